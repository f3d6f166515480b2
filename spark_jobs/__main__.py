"""`python -m spark_jobs NAME ...`, or `spark-submit spark_jobs/__main__.py NAME ...`."""

from __future__ import annotations

import sys
from pathlib import Path


def find_package() -> None:
    """Started as a script, this package's own folder is on the path instead of the one that holds it."""
    here = Path(__file__).resolve().parent
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    sys.path[:] = [str(here.parent), *others]


if __name__ == "__main__":
    if not __package__:
        find_package()
    from spark_jobs.commands import main

    main()
