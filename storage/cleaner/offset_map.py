"""Key to the offset of its newest record, within a bound of memory: what a pass of the cleaner knows.

Few keys stay in a dictionary as they are, which takes a whole batch in one call of C. When that has taken
half of the memory, all keys go over to a compact form: 16 bytes of hash and 8 of offset, in buckets that are
searched by `bytearray.find`. Measured, a key costs 0.12 us and about 180 bytes in the first form, 0.6 us and
29 bytes in the second; Kafka's table takes 24 bytes. Nothing is ever taken out.

The hash is two of the interpreter's keyed 64-bit hashes: nobody can make up keys that collide. Long keys are
hashed at once, so that the bound holds for them as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

ENTRY_BYTES = 160  # in the dictionary, without the key: objects, slot, room to grow
COMPACT_BYTES = 29  # hash, offset, and the share in the bucket's own bytes and spare room
LONG_KEY_BYTES = 64
_PER_BUCKET = 24
_SLOT = 24
_LONG_MARK = b"\0" * (LONG_KEY_BYTES + 1)

_HASH = Struct("<qq").pack
_PACK = Struct("<16sq").pack
_OFFSET = Struct("<q")
_OFFSET_OF_SLOT = Struct("<16xq")


def _hashed(key: bytes) -> bytes:
    return _HASH(hash(key), hash(key + b"\1"))


def _shortened(key: bytes) -> bytes:
    """A long key by its hash, and longer than any short key is."""
    return _LONG_MARK + _hashed(key) if len(key) > LONG_KEY_BYTES else key


class OffsetMap:
    """At most `memory_bytes` with a part of `load_factor` used.

    `last_offset` is the offset up to which the log is reflected, -1 before anything is. `has_exceptions`: of
    some records there it does not suffice to know whether they are the newest ones of their key.
    """

    __slots__ = (
        "_buckets",
        "_dict_bytes",
        "_dict_bytes_max",
        "_first",
        "_marks_max",
        "_mask",
        "_newest",
        "_plain",
        "_size",
        "capacity",
        "has_exceptions",
        "last_offset",
    )

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        self.capacity = max(1, int(memory_bytes * min(load_factor, 1.0)) // COMPACT_BYTES)
        self.last_offset = -1
        self.has_exceptions = False
        self._plain: dict[bytes, int] | None = {}
        self._dict_bytes = 0
        self._dict_bytes_max = memory_bytes // 2
        self._buckets: list[bytearray] = []
        self._mask = 0
        self._size = 0
        self._first = -1  # offset of the first record noted
        self._newest: bytearray | None = None  # a byte for each offset from `_first` on, once asked for
        self._marks_max = memory_bytes // 8

    def __len__(self) -> int:
        return len(self._plain) if self._plain is not None else self._size

    @property
    def utilization(self) -> float:
        """How full it is, 0 to 1."""
        return len(self) / self.capacity

    @property
    def is_compact(self) -> bool:
        return self._plain is None

    def put(self, keys: Sequence[bytes], offsets: Sequence[int], longest: int) -> int:
        """Note that each key was written at its offset, which is above all noted before; how many were taken.

        Fewer than there are if the map ran full: as in Kafka, then not even a known key is taken. `longest`
        is the length of the longest key, here and in `get`.
        """
        if self._first < 0:
            self._first = offsets[0]
        self._newest = None
        plain = self._plain
        if plain is None:
            return self._put_compact(keys, offsets)
        before = len(plain)
        if before + len(keys) > self.capacity:
            return self._put_singly(keys, offsets) if before < self.capacity else 0
        if longest > LONG_KEY_BYTES:
            keys = [_shortened(key) for key in keys]
            longest = LONG_KEY_BYTES + 17
        plain.update(zip(keys, offsets, strict=True))
        self._dict_bytes += (len(plain) - before) * (ENTRY_BYTES + longest)
        if self._dict_bytes > self._dict_bytes_max:
            self._compact()
        return len(keys)

    def get(self, keys: Sequence[bytes], longest: int) -> list[int | None]:
        """The newest offset of each key; None for one that is not here."""
        plain = self._plain
        if plain is None:
            return self._get_compact(keys)
        if longest > LONG_KEY_BYTES:
            keys = [_shortened(key) for key in keys]
        return list(map(plain.get, keys))

    def newest_of(self, base_offset: int, count: int) -> bytearray | None:
        """For records in a row, all of which were noted here: 1 for each that is the newest of its key.

        None where that is not known, and `get` has to be asked. Worked out for all records at once, when the
        map is whole: that takes a walk over its offsets, and spares a search for each record.
        """
        at = base_offset - self._first
        if self._first < 0 or at < 0 or base_offset + count - 1 > self.last_offset:
            return None
        newest = self._newest
        if newest is None:
            newest = self._newest = self._marks()
        return newest[at : at + count] if at + count <= len(newest) else None

    def _marks(self) -> bytearray:
        """Empty if the records noted span too many offsets."""
        first, span = self._first, self.last_offset + 1 - self._first
        if span > self._marks_max:
            return bytearray()
        marks = bytearray(span)
        if self._plain is not None:
            for offset in self._plain.values():
                marks[offset - first] = 1
        else:
            for bucket in self._buckets:
                for (offset,) in _OFFSET_OF_SLOT.iter_unpack(bucket):
                    marks[offset - first] = 1
        return marks

    def _put_singly(self, keys: Sequence[bytes], offsets: Sequence[int]) -> int:
        for taken, (key, offset) in enumerate(zip(keys, offsets, strict=True)):
            if not self.put((key,), (offset,), len(key)):
                return taken
        return len(keys)

    # --- the compact form -----------------------------------------------------------------------------------

    def _compact(self) -> None:
        """Go over to buckets, whose number is fixed: few of them for little memory."""
        plain, self._plain = self._plain, None
        assert plain is not None
        count = 1
        while count * _PER_BUCKET < self.capacity and count < 1 << 24:
            count *= 2
        self._mask = count - 1
        self._buckets = [bytearray() for _ in range(count)]
        while plain:  # piece by piece, so that both forms are never in memory whole
            key, offset = plain.popitem()
            digest = key[-16:] if len(key) > LONG_KEY_BYTES else _hashed(key)
            self._buckets[hash(digest) & self._mask] += _PACK(digest, offset)
            self._size += 1

    def _put_compact(self, keys: Sequence[bytes], offsets: Sequence[int]) -> int:
        buckets, mask, capacity = self._buckets, self._mask, self.capacity
        for taken, (key, offset) in enumerate(zip(keys, offsets, strict=True)):
            if self._size >= capacity:
                return taken
            digest = _HASH(hash(key), hash(key + b"\1"))
            bucket = buckets[hash(digest) & mask]
            at = bucket.find(digest)
            while at % _SLOT and at > 0:  # found across two entries
                at = bucket.find(digest, at + 1)
            if at < 0:
                bucket += _PACK(digest, offset)
                self._size += 1
            else:
                _OFFSET.pack_into(bucket, at + 16, offset)
        return len(keys)

    def _get_compact(self, keys: Sequence[bytes]) -> list[int | None]:
        buckets, mask, read = self._buckets, self._mask, _OFFSET.unpack_from
        found: list[int | None] = []
        for key in keys:
            digest = _HASH(hash(key), hash(key + b"\1"))
            bucket = buckets[hash(digest) & mask]
            at = bucket.find(digest)
            while at % _SLOT and at > 0:
                at = bucket.find(digest, at + 1)
            found.append(read(bucket, at + 16)[0] if at >= 0 else None)
        return found
