"""One connection to another broker: answers in one buffer, of any size and in any pieces."""

from __future__ import annotations

import asyncio

import pytest

from broker.cluster.link import FIRST_BYTES, STEP_BYTES, Link
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.client_connection import ClientConnection
from protocol.errors import ProtocolViolation
from protocol.headers import encode_response_header


class Transport:
    def __init__(self):
        self.sent, self.aborted = [], False

    def write(self, data):
        self.sent.append(bytes(data))

    def abort(self):
        self.aborted = True


def fetched(correlation_id, records):
    """An answer to a fetch, as it travels."""
    row = m.FetchResponse.PartitionData(partition_index=0, records=records)
    topic = m.FetchResponse.FetchableTopicResponse(topic_id=b"t" * 16, partitions=[row])
    head = encode_response_header(ApiKey.FETCH, 17, correlation_id)
    body = m.FetchResponse(responses=[topic]).encode(17)
    return (len(head) + len(body)).to_bytes(4, "big") + head + body


def give(link, data, most=1 << 30):
    """What the socket does."""
    at = 0
    while at < len(data):
        view = link.get_buffer(-1)
        count = min(len(view), len(data) - at, most)
        assert count
        view[:count] = data[at : at + count]
        link.buffer_updated(count)
        at += count


def on_link(story):
    async def main():
        link = Link(ClientConnection("me"))
        link.transport = Transport()
        link.connection_made(link.transport)
        await story(link)

    asyncio.run(main())


def records_of(answer):
    return answer.responses[0].partitions[0].records


async def begun(link):
    asked = asyncio.ensure_future(link.send(link.client.send(m.FetchRequest(), 17)))
    await asyncio.sleep(0)
    return asked


@pytest.mark.parametrize("size", [0, 100, FIRST_BYTES - 50, FIRST_BYTES, 3 << 20, STEP_BYTES + 5_000_000])
def test_answers_of_any_size_come_in_any_pieces(size):
    async def story(link):
        records = bytes(range(256)) * (size // 256) + bytes(size % 256)
        for number, most in enumerate((1 << 30, 64_001)):
            asked = await begun(link)
            give(link, fetched(number, records), most)
            assert bytes(records_of(await asked)) == records
        asked = await begun(link)
        for byte in fetched(2, b"last"):
            give(link, bytes((byte,)))
        assert records_of(await asked) == b"last"

    on_link(story)


def test_records_are_views_of_one_buffer_which_the_next_answer_uses():
    async def story(link):
        asked = await begun(link)
        give(link, fetched(0, b"first"))
        first = records_of(await asked)
        asked = await begun(link)
        give(link, fetched(1, b"again"))
        assert records_of(await asked) == b"again"
        assert first == b"again"

    on_link(story)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        fetched(0, b"a") + b"\0",
        fetched(1, b"a"),  # of another request
        fetched(0, b"a")[:-1] + b"\7",  # tags that are not there
    ],
)
def test_what_is_no_answer_ends_the_connection(data):
    async def story(link):
        asked = await begun(link)
        link.get_buffer(-1)[: len(data)] = data
        link.buffer_updated(len(data))
        with pytest.raises(Exception, match=r".") as caught:
            await asked
        assert caught.value is link.failure
        assert link.transport.aborted

    on_link(story)


def test_an_answer_that_nobody_waits_for_ends_it():
    async def story(link):
        link.client.send(m.FetchRequest(), 17)
        give(link, fetched(0, b"a"))
        assert isinstance(link.failure, ProtocolViolation)
        with pytest.raises(ProtocolViolation):
            await link.send(b"more")

    on_link(story)


def test_who_waits_hears_of_a_lost_connection():
    async def story(link):
        asked = await begun(link)
        link.connection_lost(None)
        with pytest.raises(ConnectionResetError, match="closed the connection"):
            await asked

    on_link(story)


def test_an_answer_to_somebody_who_has_gone_is_dropped():
    async def story(link):
        asked = await begun(link)
        asked.cancel()
        await asyncio.sleep(0)
        give(link, fetched(0, b"a"))
        assert link.failure is None

    on_link(story)
