"""The child side of `runtime.workers`: read a pickled call, run it, answer, until the input ends.

It imports little, asyncio least of all: a worker should have begun before its caller notices.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from typing import BinaryIO

LENGTH = struct.Struct(">Q")  # of a pickled call or answer, in front of it


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until `requests` ends. An exception of the function is an answer, too."""
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        request = requests.read(LENGTH.unpack(head)[0])
        try:
            function, args = pickle.loads(request)
            answer = pickle.dumps((True, function(*args)), pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # whatever it is belongs to the caller
            answer = _failure(error)
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _failure(error: Exception) -> bytes:
    try:
        answer = pickle.dumps((False, error), pickle.HIGHEST_PROTOCOL)
        pickle.loads(answer)  # some exceptions can be written but not read
    except Exception:
        answer = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return answer


def main() -> None:
    """Keep the pipe for answers to ourselves and give standard output the descriptor of standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the broker decides when its workers end
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, answers)
    except BrokenPipeError:
        os._exit(1)  # the broker is gone and nobody reads a traceback
