"""A plain parser of a records section, written for clarity: what the fast walk is compared with.

It follows the file format word by word and shares no code with the product.
"""


class Refused(Exception):
    """The section breaks the format."""


class Parser:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)

    def byte(self) -> int:
        if self.at >= self.end:
            raise Refused("end of data")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self, bits: int) -> int:
        number = 0
        for group in range((bits + 6) // 7):
            byte = self.byte()
            number += (byte % 128) << (7 * group)
            if byte < 128:
                number %= 1 << bits
                return -(number + 1) // 2 if number % 2 else number // 2
        raise Refused("too long")

    def field(self, nullable: bool) -> bytes | None:
        length = self.varint(32)
        if length == -1 and nullable:
            return None
        if length < 0 or length > self.end - self.at:
            raise Refused("bad length")
        self.at += length
        return self.data[self.at - length : self.at]


def parse(data: bytes, count: int) -> list[tuple]:
    """[(time delta, offset delta, key, value, headers)] of exactly `count` records, or Refused."""
    outer = Parser(data)
    found = []
    for _ in range(count):
        body = outer.field(nullable=False)
        inner = Parser(body)
        inner.byte()
        time_delta, offset_delta = inner.varint(64), inner.varint(32)
        key, value = inner.field(True), inner.field(True)
        header_count = inner.varint(32)
        if header_count < 0:
            raise Refused("negative header count")
        headers = []
        for _ in range(header_count):
            name = inner.field(False)
            headers.append((name, inner.field(True)))
        if inner.at != inner.end:
            raise Refused("bytes left in record")
        found.append((time_delta, offset_delta, key, value, headers))
    if outer.at != outer.end:
        raise Refused("bytes left")
    return found
