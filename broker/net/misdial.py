"""Recognises bytes of another protocol at the start of a frame, so that the log can say what really happened.

A peer that speaks TLS, HTTP, SSH or the PROXY protocol to a plain Kafka port sends bytes whose first four,
read as a frame size, are far above any sane limit. The connection asks here only once a size was refused,
so that ordinary traffic pays nothing. Every such peer is closed; HTTP gets a short 400 first, because a
browser or a probe then shows a reason instead of a reset.
"""

from __future__ import annotations

HTTP_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"Connection: close\r\n"
    b"Content-Length: 58\r\n\r\n"
    b"This port speaks the Kafka protocol. It is not for HTTP.\r\n"
)

_HTTP_STARTS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN", b"PATC", b"TRAC", b"PRI ")


def recognise(start: bytes) -> tuple[str, bytes] | None:
    """What the first bytes of a refused frame look like: a name for the log and what to answer (may be
    empty).

    `start` needs at least four bytes; None when they are nothing known.
    """
    head = start[:4]
    if head in _HTTP_STARTS:
        return "HTTP", HTTP_ANSWER
    if head[0] in (0x14, 0x15, 0x16, 0x17) and head[1] == 3 and head[2] <= 4:
        return "TLS", b""
    if head == b"PROX":
        return "the PROXY protocol (version 1)", b""
    if head == b"\r\n\r\n":
        return "the PROXY protocol (version 2)", b""
    if head == b"SSH-":
        return "SSH", b""
    return None
