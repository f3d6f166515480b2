"""Requests that are nearly right: random values in every field, then bytes changed, and batches the same way.

Everything follows from one `random.Random`, so that a seed repeats a run.
"""

from __future__ import annotations

import random
import struct
from typing import Any

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import UnencodableMessage
from protocol.headers import RequestHeader, encode_request_header
from protocol.records.batch import Record
from protocol.records.builder import build_batch, stamp_crc
from protocol.records.legacy import build_message_set
from protocol.schema.cache import definition, message_class
from protocol.schema.model import Field, Struct

TOPICS = ("fuzz-a", "fuzz-b", "fuzz-compacted", "fuzz-gzip")
NAMES = (*TOPICS, "", "..", "a/b", "nobody", "x" * 300, "__consumer_offsets", "é")
EDGES = {
    "int8": (0, 1, -1, 127, -128, 2, 4, 8, 16),
    "int16": (0, 1, -1, 32767, -32768, 2),
    "uint16": (0, 1, 65535),
    "int32": (0, 1, -1, 2**31 - 1, -(2**31), 2, 3, 100, 1000),
    "uint32": (0, 1, 2**32 - 1),
    "int64": (0, 1, -1, -2, -3, -6, 2**63 - 1, -(2**63), 10, 1_700_000_000_000),
}
TIME = 1_700_000_000_000
WAITS = ("max_wait_ms", "timeout_ms")


class Mutator:
    """Makes frames. `ids` are topic ids that exist."""

    def __init__(self, chance: random.Random, ids: list[bytes]) -> None:
        self.chance = chance
        self.ids = ids
        self._names: tuple[str, ...] = TOPICS
        self._ids = ids

    def frame(self, versions: dict[int, tuple[int, int]]) -> bytes:
        """A frame of any served API and version: sound, damaged, or noise."""
        chance = self.chance
        kind = chance.random()
        if kind < 0.05:
            return chance.randbytes(chance.randrange(1, 400))
        key = chance.choice(sorted(versions))
        if kind < 0.3:
            key = chance.choice((int(ApiKey.PRODUCE), int(ApiKey.FETCH), int(ApiKey.LIST_OFFSETS)))
        oldest, newest = versions[key]
        version = chance.randint(oldest, newest)
        payload = bytearray(
            encode_request_header(RequestHeader(key, version, chance.getrandbits(31), "fuzz"))
        )
        payload += self.body(key, version)
        if kind > 0.4:
            payload = self.damaged(payload, 4 if kind < 0.9 else 0)
        size = len(payload) if chance.random() > 0.02 else chance.choice(EDGES["int32"])
        return struct.pack(">i", size) + payload

    def body(self, key: int, version: int) -> bytes:
        """Most requests that delete name what is not there, so that something is left to read."""
        spare = key in (ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS) and self.chance.random() < 0.98
        self._names = NAMES[len(TOPICS) :] if spare else TOPICS
        self._ids = [] if spare else self.ids
        name = f"{ApiKey(key).title}Request"
        for _ in range(20):
            request = self._struct(name, definition(name).root, message_class(name), version)
            try:
                return bytes(request.encode(version))
            except UnencodableMessage:
                continue  # a random value that this version cannot carry
        return m.request_class(key)().encode(version)

    def damaged(self, data: bytearray, first: int) -> bytearray:
        """Some bytes changed, from `first` on."""
        chance = self.chance
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            if len(data) <= first:
                break
            at = chance.randrange(first, len(data))
            match chance.randrange(6):
                case 0:
                    data[at] ^= 1 << chance.randrange(8)
                case 1:
                    data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
                case 2:
                    del data[at : at + chance.choice((1, 2, 4, 100))]
                case 3:
                    data[at:at] = chance.randbytes(chance.choice((1, 2, 4, 100)))
                case 4:
                    data[at : at + 4] = struct.pack(">i", chance.choice(EDGES["int32"]))
                case 5:
                    data[at:at] = data[at : at + chance.randrange(200)]
        return data

    def records(self) -> bytes:
        """A batch or a message set, mostly damaged, its checksum mostly made right again."""
        chance = self.chance
        times = chance.choice(((TIME,), (TIME,), (TIME,), (TIME, -1, 0, 2**62)))
        keys = chance.choice(((b"key",), (None, b"", b"key", b"other")))
        records = [
            Record(
                i,
                chance.choice(times) + i,
                chance.choice(keys),
                chance.choice((None, b"", b"value" * chance.randrange(200))),
                (("name", b"content"),) * chance.randrange(3),
            )
            for i in range(chance.choice((0, 1, 1, 3, 200)))
        ]
        if chance.random() < 0.15:
            plain = [record._replace(headers=()) for record in records] or [Record(0, 0, b"", b"", ())]
            return bytes(self.damaged(bytearray(build_message_set(plain, chance.randrange(2))), 0))
        batch = build_batch(
            records,
            codec=chance.randrange(5),
            producer_id=chance.choice((-1, -1, -1, 5, 2**62)),
            producer_epoch=chance.choice((-1, 0, 3)),
            base_sequence=chance.choice((-1, 0, 1, 2**31 - 1)),
        )
        if chance.random() < 0.7:
            batch = self.damaged(batch, chance.choice((0, 21, 61)))
            if len(batch) > 21 and chance.random() < 0.8:
                stamp_crc(batch, 0, len(batch))
        return bytes(batch)

    def _struct(self, name: str, group: Struct, made: type, version: int) -> Any:
        values = {
            field.attribute: self._value(name, field, version)
            for field in group.fields
            if version in field.versions and (field.tag is None or self.chance.random() < 0.2)
        }
        return made(**values)

    def _value(self, name: str, field: Field, version: int) -> Any:
        chance = self.chance
        if version in field.nullable and chance.random() < 0.2:
            return None
        if field.is_array:
            return [self._one(name, field, version) for _ in range(chance.choice((0, 1, 1, 1, 2, 5)))]
        return self._one(name, field, version)

    def _one(self, name: str, field: Field, version: int) -> Any:
        chance = self.chance
        if field.struct is not None:
            return self._struct(name, field.struct, getattr(message_class(name), field.element), version)
        if field.attribute in WAITS:
            return chance.choice((0, 0, -1, 5))
        if field.attribute == "acks":
            return chance.choice((-1, 1, 1, 0, 2))
        match field.element:
            case "string":
                return chance.choice(
                    NAMES if self._names is TOPICS and chance.random() < 0.3 else self._names
                )
            case "records":
                return self.records()
            case "bytes":
                return chance.randbytes(chance.randrange(20))
            case "uuid":
                return chance.choice((*self._ids, bytes(16), chance.randbytes(16)))
            case "bool":
                return chance.random() < 0.5
            case "float64":
                return chance.choice((0.0, -1.0, 1e300))
        if field.attribute in ("partition", "partition_index", "index", "partition_indexes", "partitions"):
            return chance.choice((0, 0, 0, 1, -1, 99))
        return chance.choice(EDGES[field.element])
