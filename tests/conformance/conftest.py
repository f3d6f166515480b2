"""Behaviour that clients see, asserted on our broker and on a real Apache Kafka 4.4.0 alike.

Every test here runs twice, so an assertion that is not Kafka's own behaviour fails on Kafka.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.consumer_member import ConsumerMember
from tests.support.group_member import Member, await_coordinator, create_for_groups
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.transactions import TxnProducer
from tests.support.wire_client import WireClient

_numbers = itertools.count()


@pytest.fixture
def wire(either_broker: OttlaProcess | KafkaProcess) -> Iterator[WireClient]:
    """A connection to each broker in turn."""
    with WireClient(either_broker.bootstrap_servers) as client:
        yield client


@pytest.fixture
def name() -> str:
    """A topic name of the test's own."""
    return f"conformance-{next(_numbers)}"


@pytest.fixture
def topic(wire: WireClient, name: str) -> str:
    """A fresh topic with one partition."""
    wire.create_topic(name)
    return name


@pytest.fixture
def producer(wire: WireClient, name: str) -> TxnProducer:
    """A producer that has its id, of a name of its own."""
    return TxnProducer(wire, name).init()


@pytest.fixture
def new_member(either_broker: OttlaProcess | KafkaProcess, name: str) -> Iterator[Callable[..., Member]]:
    """Makes members of a group of the test's own; see `Member` for what may be said of them."""
    servers = either_broker.bootstrap_servers
    with WireClient(servers) as wire:
        await_coordinator(wire, name)
    with ExitStack() as members:
        yield lambda **fields: members.enter_context(Member(servers, name, **fields))


@pytest.fixture
def topic_id(wire: WireClient, name: str) -> bytes:
    """The id of a topic with four partitions, called as the test's group."""
    return create_for_groups(wire, name, 4)


@pytest.fixture
def member(
    either_broker: OttlaProcess | KafkaProcess, name: str, topic_id: bytes
) -> Iterator[Callable[..., ConsumerMember]]:
    """Makes members of a consumer group of the test's own, which subscribe to its topic."""
    servers = either_broker.bootstrap_servers
    with WireClient(servers) as wire:
        await_coordinator(wire, name)
    with ExitStack() as members:
        yield lambda member_id="a", topics=(name,), **fields: members.enter_context(
            ConsumerMember(servers, name, member_id, topics, **fields)
        )
