"""Messages by name, made on first use: definition read, classes made, codecs compiled per version.

A process pays only for what it uses: about 0.3 ms for a message and 1 ms for each codec.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from protocol import primitives
from protocol.schema import base, notation
from protocol.schema.classes import make_class
from protocol.schema.decode_source import decode_source
from protocol.schema.defs import MESSAGES
from protocol.schema.encode_source import encode_source
from protocol.schema.model import Message

#: Arrays of numbers up to this length have ready structs, which take a third of the time of a format string.
_SMALL_ARRAY: Final = 8


@cache
def _small_arrays() -> dict[str, list[struct.Struct]]:
    return {code: [struct.Struct(f">{n}{code}") for n in range(_SMALL_ARRAY + 1)] for code in "bhiq"}


@cache
def definition(name: str) -> Message:
    """The model of a message. Raises KeyError for an unknown name."""
    text: str = import_module(f"protocol.schema.defs.{MESSAGES[name]}").DEFINITIONS
    for found, lines in notation.blocks(text):
        if found == name:
            return notation.parse_message(lines)
    raise KeyError(name)


@cache
def message_class(name: str) -> type[base.Message]:
    """The class of a message. Raises KeyError for an unknown name."""
    return with_codecs(definition(name))


def with_codecs(message: Message) -> type[base.Message]:
    """The class of a message, which compiles its codecs when they are needed."""
    made = make_class(message)

    def compile_decoder(version: int) -> base.Decoder:
        return _compiled("decode", message, made, version, *decode_source(message, version))

    def compile_encoder(version: int) -> base.Encoder:
        return _compiled("encode", message, made, version, *encode_source(message, version))

    made._compile_decoder = staticmethod(compile_decoder)
    made._compile_encoder = staticmethod(compile_encoder)
    return made


def _compiled(
    function: str,
    message: Message,
    made: type[base.Message],
    version: int,
    source: str,
    structs: dict[str, struct.Struct],
) -> Callable[..., Any]:
    names: dict[str, object] = {name: value for name, value in vars(primitives).items() if callable(value)}
    names.update(
        new=object.__new__,
        pack=struct.pack,
        unpack_from=struct.unpack_from,
        SMALL_UVARINTS=primitives.SMALL_UVARINTS,
        SMALL_ARRAY=_SMALL_ARRAY,
        LONG_FIELD=base.LONG_FIELD_BYTES,
    )
    for code, fixed_arrays in _small_arrays().items():
        names[f"pack_{code}"] = tuple(fixed.pack for fixed in fixed_arrays)
        names[f"unpack_{code}"] = tuple(fixed.unpack_from for fixed in fixed_arrays)
    names[f"C_{message.name}"] = made
    for name in message.structs:
        names[f"C_{name}"] = getattr(made, name)
    for name, fixed in structs.items():
        names[f"{name}_pack"] = fixed.pack
        names[f"{name}_unpack"] = fixed.unpack_from
    exec(compile(source, f"<{function} {message.name} v{version}>", "exec"), names)
    compiled: Callable[..., Any] = names[function]  # type: ignore[assignment]
    return compiled
