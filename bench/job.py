"""Loads run in processes of their own, so that neither their memory nor their collector's pauses mix.

python -m bench.job MODULE:FUNCTION '{"argument": 1}'      prints the function's result as JSON
"""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

TIMEOUT_SECONDS = 600


class JobFailed(RuntimeError):
    """The load ended with an error; the message holds its last lines."""


def run(function: str, on_line: Callable[[str], object] | None = None, **arguments: object) -> dict[str, Any]:
    """Call "module:function" in a new process and hand back what it returned.

    `on_line` is called with each line it prints, the result's too.
    """
    command = [sys.executable, "-m", "bench.job", function, json.dumps(arguments)]
    last = ""
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            ending = threading.Timer(TIMEOUT_SECONDS, process.kill)
            ending.start()
            assert process.stdout is not None
            for line in process.stdout:
                last = line
                if on_line is not None:
                    on_line(line)
            process.wait()
            ending.cancel()
        if process.returncode:
            errors.seek(0)
            raise JobFailed("\n".join(errors.read().strip().splitlines()[-12:]))
    result: dict[str, Any] = json.loads(last)
    return result


def main(function: str, arguments: str) -> None:
    module, _, name = function.partition(":")
    target = getattr(importlib.import_module(module), name)
    gc.freeze()
    print(json.dumps(target(**json.loads(arguments))))


if __name__ == "__main__":
    main(*sys.argv[1:])
