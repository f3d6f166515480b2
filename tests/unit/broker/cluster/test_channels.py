"""Channels over real loopback connections, to a server that answers as the test says."""

from __future__ import annotations

import asyncio

import pytest

from broker.cluster.channels import ChannelSettings, DialledChannels
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.frames import FrameSplitter, frame
from protocol.headers import decode_request_header, encode_response_header
from replication.cluster.channel import ChannelLost
from runtime.network import LoopNetwork


class Server(asyncio.Protocol):
    """Answers StopReplica with `owner.error`, ApiVersions with ranges; or does what `owner.deed` says."""

    def __init__(self, owner):
        self.owner, self.frames = owner, FrameSplitter()

    def connection_made(self, transport):
        self.transport = transport
        self.owner.connections.append(self)

    def data_received(self, data):
        for payload in self.frames.feed(data):
            header, _ = decode_request_header(payload)
            self.owner.seen.append((ApiKey(header.api_key), header.api_version, header.client_id))
            if header.api_key == ApiKey.API_VERSIONS:
                answer = m.ApiVersionsResponse(
                    api_keys=[m.ApiVersionsResponse.ApiVersion(api_key=5, min_version=0, max_version=3)]
                )
            elif self.owner.deed is not None:
                self.owner.deed(self)
                continue
            else:
                answer = m.StopReplicaResponse(error_code=self.owner.error)
            head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
            self.transport.write(frame(head, answer.encode(header.api_version)))


class Owner:
    def __init__(self):
        self.connections, self.seen, self.error, self.deed = [], [], ErrorCode.NONE, None


def on_channel(story, timeout_s=30.0):
    async def main():
        network = LoopNetwork(asyncio.get_running_loop())
        owner = Owner()
        listener = await network.listen("127.0.0.1", 0, lambda: Server(owner))
        owner.addresses = {2: listener.address}
        settings = ChannelSettings("me", "1", lambda broker: owner.addresses.get(broker), timeout_s)
        channel = DialledChannels(network, settings).to(2, "control")
        try:
            await story(owner, channel)
        finally:
            await channel.close()
            listener.close()
            for _ in range(5):  # what was being accepted
                await asyncio.sleep(0)
            for connection in owner.connections:
                connection.transport.abort()
            await asyncio.sleep(0)

    asyncio.run(main())


def test_a_request_at_a_version_goes_out_without_negotiation():
    async def story(owner, channel):
        owner.error = ErrorCode.STALE_BROKER_EPOCH
        answer = await channel.ask(m.StopReplicaRequest(), 4)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        await channel.ask(m.StopReplicaRequest(), 4)
        assert owner.seen == [(ApiKey.STOP_REPLICA, 4, "me")] * 2
        assert len(owner.connections) == 1

    on_channel(story)


def test_without_a_version_the_newest_that_both_know_is_taken():
    async def story(owner, channel):
        await channel.ask(m.StopReplicaRequest())
        await channel.ask(m.StopReplicaRequest())
        assert [(key, version) for key, version, _ in owner.seen] == [
            (ApiKey.API_VERSIONS, m.ApiVersionsRequest.MAX_VERSION),
            (ApiKey.STOP_REPLICA, 3),
            (ApiKey.STOP_REPLICA, 3),
        ]

    on_channel(story)


def test_what_the_broker_does_not_offer_is_lost():
    async def story(owner, channel):
        with pytest.raises(ChannelLost, match="does not offer"):
            await channel.ask(m.AlterPartitionRequest())

    on_channel(story)


@pytest.mark.parametrize(
    "deed",
    [
        lambda server: server.transport.abort(),
        lambda server: server.transport.write(b"\xff\xff\xff\xff"),
        lambda server: server.transport.write(b"\0\0\0\x08\0\0\0\x63abcd"),  # of another request
    ],
)
def test_a_connection_that_goes_wrong_is_dropped_and_the_next_request_dials_anew(deed):
    async def story(owner, channel):
        owner.deed = deed
        with pytest.raises(ChannelLost, match="broker 2"):
            await channel.ask(m.StopReplicaRequest(), 4)
        owner.deed = None
        await channel.ask(m.StopReplicaRequest(), 4)
        assert len(owner.connections) == 2

    on_channel(story)


def test_nobody_listens():
    async def story(owner, channel):
        host, port = owner.addresses[2]
        owner.addresses[2] = (host, 1)
        with pytest.raises(ChannelLost):
            await channel.ask(m.StopReplicaRequest(), 4)
        del owner.addresses[2]
        with pytest.raises(ChannelLost, match="not known"):
            await channel.ask(m.StopReplicaRequest(), 4)
        owner.addresses[2] = (host, port)
        await channel.ask(m.StopReplicaRequest(), 4)

    on_channel(story)


def test_an_answer_that_does_not_come_is_given_up():
    async def story(owner, channel):
        owner.deed = lambda server: None
        with pytest.raises(ChannelLost, match="did not answer in time"):
            await channel.ask(m.StopReplicaRequest(), 4)

    on_channel(story, timeout_s=0.05)


def test_an_abort_ends_the_request_in_flight():
    async def story(owner, channel):
        owner.deed = lambda server: channel.abort()
        with pytest.raises(ChannelLost, match="dropped"):
            await channel.ask(m.StopReplicaRequest(), 4)

    on_channel(story)


def test_an_abort_while_it_dials_counts_too():
    async def story(owner, channel):
        asking = asyncio.get_running_loop().create_task(channel.ask(m.StopReplicaRequest(), 4))
        await asyncio.sleep(0)
        channel.abort()
        with pytest.raises(ChannelLost, match="dropped"):
            await asking

    on_channel(story)


def test_a_request_that_is_cancelled_takes_the_connection_with_it():
    async def story(owner, channel):
        arrived = asyncio.Event()
        owner.deed = lambda server: arrived.set()
        asking = asyncio.get_running_loop().create_task(channel.ask(m.StopReplicaRequest(), 4))
        await arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        owner.deed = None
        await channel.ask(m.StopReplicaRequest(), 4)
        assert len(owner.connections) == 2

    on_channel(story)
