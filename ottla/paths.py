"""Where the broker's packages are, and how our own processes find them first.

The packages have common names (`broker`, `storage`, `protocol` ...), which a user's project may have too.
In a wheel they lie in `ottla/_lib/`, in a checkout beside `ottla/`. Two rules keep them apart from the
user's:

- only processes of ours (the `ottla` command, the embedded broker's child) put that folder on their path;
- there it stands first, before PYTHONPATH, the working directory and whatever the parent put on its path.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

PACKAGE_FOLDER = Path(__file__).resolve().parent


def library_root() -> Path:
    """The folder that holds our packages: `ottla/_lib` of an installed wheel, else the checkout's root."""
    installed = PACKAGE_FOLDER / "_lib"
    return installed if installed.is_dir() else PACKAGE_FOLDER.parent


def use_own_packages() -> None:
    """Puts our packages before everything else on this process's path; for processes of ours only."""
    root = str(library_root())
    if sys.path[:1] != [root]:
        sys.path.insert(0, root)


def child_search_path() -> list[str]:
    """What a child interpreter searches after its standard library.

    Installed packages come before the parent's other entries: a `click.py` beside the user's tests must not
    stand in for a dependency of the broker.
    """
    parents = [os.path.abspath(entry) for entry in sys.path if entry]
    installed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    order = [str(PACKAGE_FOLDER.parent), *(entry for entry in installed if entry in parents), *parents]
    return list(dict.fromkeys(order))


# `-P` keeps the working directory off the path and `-S` spares the scan of site-packages for .pth files
# (a third of an empty interpreter's start); the path is given whole instead. The standard library stays
# in front of the user's entries, and our packages in front of it.
BOOTSTRAP = (
    "import json, sys; search = json.loads(sys.argv.pop(1)); "
    "sys.path[:] = list(dict.fromkeys([search[0], *sys.path, *search[1:]])); "
    "from {module} import main; sys.exit(main(sys.argv[1:]))"
)


def child_command(module: str, *arguments: str) -> list[str]:
    """Command line of an interpreter that runs `main(arguments)` of one of our modules."""
    import json

    search = json.dumps([str(library_root()), *child_search_path()])
    return [sys.executable, "-P", "-S", "-c", BOOTSTRAP.format(module=module), search, *arguments]


def child_environment() -> dict[str, str]:
    """The parent's environment without what changes the child's imports or its configuration.

    KAFKA_* variables configure a daemon in a container; a user's test may run where some are set for its
    client.
    """
    dropped = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONOPTIMIZE")
    return {
        name: value
        for name, value in os.environ.items()
        if name not in dropped and not name.startswith("KAFKA_")
    }
