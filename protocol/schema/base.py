"""Base classes of all messages and of the structs inside them.

The classes themselves are made by `protocol.schema.classes`; they have slots for their fields and a
keyword-only constructor. Decoding accepts any bytes: it returns a message or raises MalformedMessage, and
allocates in proportion to the bytes given. Caps: in a request 100,000 array elements, elsewhere 1,000,000,
and 10,000 tagged fields, counted over the whole message (Kafka 4.4 counts per array and section). A string
or byte field of more than 256 bytes counts as an element for each of them, since a decoded string may take
four times its bytes; `records` are not copied and do not count.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import ClassVar, Final, Self

from protocol.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from protocol.primitives import Buffer

MAX_REQUEST_ELEMENTS: Final = 100_000
MAX_ELEMENTS: Final = 1_000_000
MAX_TAGGED_FIELDS: Final = 10_000
LONG_FIELD_BYTES: Final = 256
#: Larger messages are decoded from a memoryview; up to here a copy as bytes is quicker, since its slices are.
_COPIED_BYTES: Final = 1 << 20

Decoder = Callable[[Buffer, int, int, memoryview, int, int], "tuple[Message, int]"]
Encoder = Callable[["Message"], bytes]


class Struct:
    """A group of fields; `==` compares all of them."""

    __slots__: ClassVar[tuple[str, ...]] = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_shown(getattr(self, name))}" for name in self.__slots__)
        return f"{type(self).__qualname__}({fields})"


def _shown(value: object) -> str:
    if isinstance(value, memoryview):
        return f"<{value.nbytes} bytes>"
    return repr(value)


class Message(Struct):
    """A whole message at all its versions.

    API_KEY is the key of the API, or the record type for records of internal topics, or -1. FLEXIBLE_FROM
    is the first version with compact encodings and tagged fields, MAX_VERSION + 1 where there is none.
    """

    __slots__: ClassVar[tuple[str, ...]] = ()

    API_KEY: ClassVar[int]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]

    _max_elements: ClassVar[int]
    _has_records: ClassVar[bool]
    _decoders: ClassVar[dict[int, Decoder]]
    _encoders: ClassVar[dict[int, Encoder]]
    _compile_decoder: ClassVar[Callable[[int], Decoder]]
    _compile_encoder: ClassVar[Callable[[int], Encoder]]

    @classmethod
    def decode(
        cls,
        version: int,
        buf: Buffer,
        at: int = 0,
        end: int | None = None,
        max_elements: int | None = None,
    ) -> tuple[Self, int]:
        """Decode the message that starts at `at`; return it and the position after it.

        Nothing at or after `end` is read. `records` fields are views of `buf`, everything else is copied.
        Raises MalformedMessage, or UnsupportedVersion for a version that the message does not have;
        ManyElements (a MalformedMessage) for arrays beyond `max_elements`, where that is given, or the cap.
        """
        decoder = cls._decoders.get(version)
        if decoder is None:
            decoder = cls._decoders[version] = cls._compile_decoder(cls.checked(version))
        if at == 0 and end is None and type(buf) is bytes:
            data: Buffer = buf
            view = memoryview(buf)
        else:
            view = memoryview(buf)[at:end]
            data = view if cls._has_records or len(view) > _COPIED_BYTES else bytes(view)
        try:
            elements = cls._max_elements if max_elements is None else max_elements
            message, stop = decoder(data, 0, len(data), view, elements, MAX_TAGGED_FIELDS)
        except (struct.error, IndexError) as error:
            raise MalformedMessage(f"{cls.__name__} v{version} ends early at byte {len(data)}") from error
        return message, at + stop  # type: ignore[return-value]

    def encode(self, version: int) -> bytes:
        """The bytes of the message at `version`.

        Raises UnencodableMessage for a value that does not fit its field or that the version cannot carry,
        and UnsupportedVersion.
        """
        encoder = self._encoders.get(version)
        if encoder is None:
            cls = type(self)
            encoder = self._encoders[version] = cls._compile_encoder(cls.checked(version))
        try:
            return encoder(self)
        except (struct.error, TypeError, AttributeError, UnicodeEncodeError) as error:
            raise UnencodableMessage(f"{type(self).__name__} v{version}: {error}") from error

    @classmethod
    def checked(cls, version: int) -> int:
        """`version` if the message has it, else raises UnsupportedVersion."""
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise UnsupportedVersion(
                f"{cls.__name__} has versions {cls.MIN_VERSION}-{cls.MAX_VERSION}, not {version}"
            )
        return version
