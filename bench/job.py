"""Loads run in processes of their own, so that neither their memory nor their collector's pauses mix.

python -m bench.job MODULE:FUNCTION '{"argument": 1}'      prints the function's result as JSON
"""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys
from typing import Any

TIMEOUT_SECONDS = 600


class JobFailed(RuntimeError):
    """The load ended with an error; the message holds its last lines."""


def run(function: str, **arguments: object) -> dict[str, Any]:
    """Call "module:function" in a new process and hand back what it returned."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.job", function, json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise JobFailed("\n".join(done.stderr.strip().splitlines()[-12:]))
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main(function: str, arguments: str) -> None:
    module, _, name = function.partition(":")
    target = getattr(importlib.import_module(module), name)
    gc.freeze()
    print(json.dumps(target(**json.loads(arguments))))


if __name__ == "__main__":
    main(*sys.argv[1:])
