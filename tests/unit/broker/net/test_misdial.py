import pytest

from broker.net.misdial import HTTP_ANSWER, recognise


@pytest.mark.parametrize(
    "verb", [b"GET / HTTP/1.1", b"POST /x", b"PUT /", b"HEAD /", b"OPTIONS *", b"DELETE /", b"CONNECT a"]
)
def test_http_is_told_so_in_its_own_words(verb):
    name, answer = recognise(verb)
    assert name == "HTTP"
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert f"Content-Length: {len(body)}".encode() in head


@pytest.mark.parametrize("start", [b"\x16\x03\x01\x02\x00", b"\x16\x03\x03\x00\xf4", b"\x15\x03\x01\x00\x02"])
def test_tls_records_are_named_and_get_no_answer(start):
    assert recognise(start) == ("TLS", b"")


def test_proxy_protocol_of_both_versions():
    assert recognise(b"PROXY TCP4 10.0.0.1")[0] == "the PROXY protocol (version 1)"
    assert recognise(b"\r\n\r\n\0\r\nQUIT\n")[0] == "the PROXY protocol (version 2)"


def test_other_bytes_are_not_guessed_at():
    assert recognise(b"\x7f\xff\xff\xff") is None
    assert recognise(b"\x16\x04\x00\x00") is None


def test_every_known_start_reads_as_a_size_above_kafkas_default_limit():
    for start in (b"GET ", b"POST", b"PUT ", b"PROX", b"\r\n\r\n", b"\x16\x03\x01\x00", b"SSH-"):
        assert int.from_bytes(start, "big") > 104857600
    assert len(HTTP_ANSWER) < 300
