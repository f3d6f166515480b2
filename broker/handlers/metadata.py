"""Metadata (3), versions 0-13: brokers, controller, topics and their partitions' leaders.

v0: an empty list asks for all topics, and replicas that are not alive are left out (error 9).
v1+: null asks for all, an empty list for none. v4+: the client may forbid auto-creation.
v5 offline replicas, v7 leader epochs, v8-10 authorised operations of the cluster, v8+ of topics.
v10-11: topic ids in the answer only; a null name or an id in the request is 42. v12+: topics by id; where
ids are given, names do not count. v13: an error for the whole answer.
Addresses are those of the listener that the request came by; a partition whose leader has no such listener
gets 72 (below v6: 5).

A missing topic is created before the answer where that is allowed, so the first answer already names the
leader. Of the coordinators' topics those of groups and of share state are created, each in its own way.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from broker.context import BrokerContext
from broker.groups import TOPIC as GROUPS_TOPIC
from broker.handlers.endpoints import brokers_with_listener, leader_of, with_offline_replicas
from broker.handlers.request import Request
from broker.security.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from broker.share_state import TOPIC as SHARE_TOPIC
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication import topic_names
from replication.controller.outcomes import NewTopic
from replication.metadata.image import ClusterImage, PartitionImage, TopicImage
from runtime.pieces import AT_ONCE, Steps, at_once, split

MIN_VERSION: Final = 0
MAX_VERSION: Final = 13
AUTO_CREATE_TIMEOUT_MS: Final = 30_000

_Topic = m.MetadataResponse.MetadataResponseTopic
_Partition = m.MetadataResponse.MetadataResponsePartition


def handle(
    ctx: BrokerContext, request: Request[m.MetadataRequest]
) -> m.MetadataResponse | Coroutine[Any, Any, m.MetadataResponse]:
    """The answer; a coroutine where topics have to be created first, or are many."""
    body, version = request.body, request.version
    topics = body.topics or []
    refusal = _refuse(topics, version)
    if refusal is not None:
        return ctx.pieces.many(_failed(topics, refusal), len(topics))
    wants_all = body.topics is None or (version == 0 and not body.topics)
    if wants_all or (topics and any(topic.topic_id != ZERO_UUID for topic in topics)):
        return ctx.pieces.many(_answer(ctx, request, {}), len(ctx.image.topics) if wants_all else len(topics))
    if len(topics) > AT_ONCE:
        return _answer_many(ctx, request)
    missing = at_once(_missing(ctx, request))
    if missing.to_create:
        return _create_and_answer(ctx, request, missing)
    return at_once(_answer(ctx, request, missing.errors))


async def _answer_many(ctx: BrokerContext, request: Request[m.MetadataRequest]) -> m.MetadataResponse:
    missing = await ctx.pieces.run(_missing(ctx, request))
    if missing.to_create:
        return await _create_and_answer(ctx, request, missing)
    return await ctx.pieces.run(_answer(ctx, request, missing.errors))


def _refuse(topics: Sequence[m.MetadataRequest.MetadataRequestTopic], version: int) -> ErrorCode | None:
    """What answers topics that are asked for in a way the version does not know."""
    if version < 12:
        if all(topic.name is not None and topic.topic_id == ZERO_UUID for topic in topics):
            return None
        return ErrorCode.INVALID_REQUEST
    if any(topic.name is None for topic in topics) and all(topic.topic_id == ZERO_UUID for topic in topics):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _failed(
    topics: Sequence[m.MetadataRequest.MetadataRequestTopic], error: ErrorCode
) -> Steps[m.MetadataResponse]:
    response = m.MetadataResponse(controller_id=-1, error_code=error)
    for some in split(topics):
        response.topics += [_Topic(error_code=error, name=t.name or "", topic_id=t.topic_id) for t in some]
        yield
    return response


@dataclass(slots=True)
class _Missing:
    """Topics that are not there: what each is answered, and those that are to be made first."""

    errors: dict[str, ErrorCode] = field(default_factory=dict)
    to_create: list[str] = field(default_factory=list)


def _missing(ctx: BrokerContext, request: Request[m.MetadataRequest]) -> Steps[_Missing]:
    body, known = request.body, ctx.image.topics
    may_wish = request.version < 4 or body.allow_auto_topic_creation
    allowed = may_wish and ctx.config.flag("auto.create.topics.enable")
    missing = _Missing()
    for some in split(list(dict.fromkeys(topic.name or "" for topic in body.topics or ()))):
        for name in some:
            if name not in known:
                missing.errors[name] = error = _missing_error(name)
                if allowed and _may_create(name, error):
                    missing.to_create.append(name)
        yield
    return missing


def _missing_error(name: str) -> ErrorCode:
    if topic_names.refusal_of(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _may_create(name: str, error: ErrorCode) -> bool:
    return name in (GROUPS_TOPIC, SHARE_TOPIC) or (
        error != ErrorCode.INVALID_TOPIC_EXCEPTION and not topic_names.is_internal(name)
    )


async def _create_and_answer(
    ctx: BrokerContext, request: Request[m.MetadataRequest], missing: _Missing
) -> m.MetadataResponse:
    names, errors = missing.to_create, missing.errors
    for coordinators in (ctx.groups, ctx.share_state):
        if coordinators.topic in names:
            names.remove(coordinators.topic)
            errors[coordinators.topic] = await coordinators.create_topic()
    outcomes = await ctx.creator.create_topics(
        [NewTopic(name) for name in names], timeout_ms=AUTO_CREATE_TIMEOUT_MS
    )
    for outcome in outcomes:
        errors[outcome.name] = outcome.error
        if outcome.error == ErrorCode.TOPIC_ALREADY_EXISTS:
            errors[outcome.name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # unless it is there by now
    return await ctx.pieces.run(_answer(ctx, request, errors))


def _answer(
    ctx: BrokerContext, request: Request[m.MetadataRequest], errors: dict[str, ErrorCode]
) -> Steps[m.MetadataResponse]:
    body, version, image = request.body, request.version, ctx.image
    brokers = brokers_with_listener(image, request.listener_name)
    operations = TOPIC_OPERATIONS if body.include_topic_authorized_operations else NOT_ASKED
    response = m.MetadataResponse(
        brokers=[
            m.MetadataResponse.MetadataResponseBroker(
                node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in brokers.values()
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id if image.controller_id in brokers else -1,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if body.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
    left = AT_ONCE
    for found in _wanted(body, version, image, errors):
        topic = _topic(ctx, found, brokers, version, operations)
        response.topics.append(topic)
        left -= 1 + len(topic.partitions)
        if left <= 0:
            yield
            left = AT_ONCE
    return response


def _wanted(
    body: m.MetadataRequest, version: int, image: ClusterImage, errors: dict[str, ErrorCode]
) -> Iterable[TopicImage | m.MetadataResponse.MetadataResponseTopic]:
    """The topics asked for, each once: an image, or the finished answer for one that is not there."""
    if body.topics is None or (version == 0 and not body.topics):
        yield from image.topics.values()
        return
    ids = dict.fromkeys(topic.topic_id for topic in body.topics if topic.topic_id != ZERO_UUID)
    for topic_id in ids:
        by_id = image.topics_by_id.get(topic_id)
        yield by_id or _Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    if ids:
        return
    for name in dict.fromkeys(topic.name or "" for topic in body.topics):
        found = image.topics.get(name)
        yield found or _Topic(
            error_code=errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            name=name,
            is_internal=topic_names.is_internal(name),
        )


def _topic(
    ctx: BrokerContext,
    found: TopicImage | m.MetadataResponse.MetadataResponseTopic,
    brokers: Mapping[int, object],
    version: int,
    operations: int,
) -> m.MetadataResponse.MetadataResponseTopic:
    if not isinstance(found, TopicImage):
        return found
    return _Topic(
        name=found.name,
        topic_id=found.topic_id,
        is_internal=topic_names.is_internal(found.name),
        partitions=[
            _partition(each, offline, ctx.image.brokers, brokers, version)
            for each, offline in with_offline_replicas(ctx, found)
        ],
        topic_authorized_operations=operations,
    )


def _partition(
    partition: PartitionImage,
    offline: list[int],
    live: Mapping[int, object],
    reachable: Mapping[int, object],
    version: int,
) -> m.MetadataResponse.MetadataResponsePartition:
    replicas, isr = list(partition.replicas), list(partition.isr)
    error, leader = leader_of(partition, live, reachable)
    if error == ErrorCode.LISTENER_NOT_FOUND and version < 6:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    elif error == ErrorCode.NONE and version == 0 and offline:
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    if version == 0:
        replicas = [broker for broker in replicas if broker in live]
        isr = [broker for broker in isr if broker in live]
    return _Partition(
        error_code=error,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )
