"""Prints the type stub of `protocol.messages` from the definitions.

    python -m protocol.schema.stubs > protocol/messages/__init__.pyi

A test compares the file with what this module prints. The text is stable under `ruff format`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from protocol.schema.cache import definition
from protocol.schema.defs import MESSAGES
from protocol.schema.model import OPEN_END, Field, Message, Struct

_HEAD: Final = '''\
"""Types of all messages. Printed by `python -m protocol.schema.stubs`; change the definitions instead."""

from typing import ClassVar

from protocol.schema.base import Message as Message
from protocol.schema.base import Struct as Struct

Records = bytes | bytearray | memoryview

def request_class(api_key: int) -> type[Message]: ...
def response_class(api_key: int) -> type[Message]: ...
'''

#: where the formatter breaks a line
_LINE_LENGTH: Final = 110

_TYPES: Final = {
    "bool": "bool",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
    "records": "Records",
}


def stub_source() -> str:
    """The whole text of the stub."""
    lines = [_HEAD]
    for name in MESSAGES:
        lines += _message_lines(definition(name))
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _message_lines(message: Message) -> Iterator[str]:
    assert message.versions.last != OPEN_END
    yield f"class {message.name}(Message):"
    yield "    API_KEY: ClassVar[int]"
    yield "    MIN_VERSION: ClassVar[int]"
    yield "    MAX_VERSION: ClassVar[int]"
    yield "    FLEXIBLE_FROM: ClassVar[int]"
    for group in message.structs.values():
        yield ""
        yield f"    class {group.name}(Struct):"
        yield from _field_lines(message, group, "        ")
    if message.structs:
        yield ""
    yield from _field_lines(message, message.root, "    ")


def _field_lines(message: Message, group: Struct, indent: str) -> Iterator[str]:
    for field in group.fields:
        yield f"{indent}{field.attribute}: {_type(message, field)}"
    if not group.fields:
        yield f"{indent}def __init__(self) -> None: ..."
        return
    yield f"{indent}def __init__("
    yield f"{indent}    self,"
    yield f"{indent}    *,"
    for field in group.fields:
        yield from _parameter_lines(field.attribute, _type(message, field), f"{indent}    ")
    yield f"{indent}) -> None: ..."


def _parameter_lines(name: str, kind: str, indent: str) -> Iterator[str]:
    line = f"{indent}{name}: {kind} = ...,"
    if len(line) <= _LINE_LENGTH or not kind.startswith("list["):
        yield line
        return
    inner, _, rest = kind.removeprefix("list[").partition("]")
    yield f"{indent}{name}: list["
    yield f"{indent}    {inner}"
    yield f"{indent}]{rest} = ...,"


def _type(message: Message, field: Field) -> str:
    text = _TYPES.get(field.element, "int")
    if field.struct is not None:
        text = f"{message.name}.{field.element}"
    if field.is_array:
        text = f"list[{text}]"
    optional = field.nullable.first <= field.nullable.last or field.default is None
    return f"{text} | None" if optional else text


if __name__ == "__main__":
    sys.stdout.write(stub_source())
