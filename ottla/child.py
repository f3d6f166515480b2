"""The embedded broker's own process: the other end of the two pipes of `ottla.embedded`.

Standard output is the answer pipe, so it is set aside before anything can print, and everything printed
goes to the log. Standard input is the command pipe; a thread reads it, and its end stops the broker as
SIGTERM would.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from io import FileIO
from typing import Any, BinaryIO


def main(arguments: Sequence[str]) -> int:
    """Runs a broker with the settings given as `key=value`; returns its exit code."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from broker.config.load import load_config
    from broker.config.values import ConfigError
    from broker.lifecycle import main as serve

    try:
        config = load_config(None, arguments)
    except ConfigError as refusal:
        print(refusal, file=sys.stderr)
        return 1

    def ready(addresses: Sequence[tuple[str, str, int]]) -> None:
        host, port = addresses[0][1:]
        answer(answers, {"port": port})
        threading.Thread(target=obey, args=(answers, host, port), name="commands", daemon=True).start()

    return serve(config, ready)


def answer(answers: BinaryIO, content: dict[str, Any]) -> None:
    """Writes one line to the parent; a parent that has gone is noticed at the command pipe's end."""
    try:
        answers.write(json.dumps(content).encode() + b"\n")
        answers.flush()
    except BrokenPipeError:
        pass


def obey(answers: BinaryIO, host: str, port: int) -> None:
    """Carries out the parent's commands until its pipe ends, then asks this process to stop."""
    for line in FileIO(0, closefd=False):
        answer(answers, carry_out(json.loads(line), host, port))
    os.kill(os.getpid(), signal.SIGTERM)


def carry_out(command: dict[str, Any], host: str, port: int) -> dict[str, Any]:
    """One command through the broker's own port, as any client would."""
    from ottla.client import ClientError, KafkaClient

    try:
        with KafkaClient(f"{host}:{port}", "ottla-embedded") as client:
            if "create_topic" in command:
                client.create_topic(command["create_topic"], command["partitions"], config=command["config"])
            else:
                client.delete_topic(command["delete_topic"])
    except ClientError as error:
        return {"error": str(error)}
    return {}
