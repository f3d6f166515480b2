"""OffsetFetch (9), versions 0-10: what groups have committed.

Up to v7 one group, with its error in each partition (v0-1) or on top (v2+). v8+ many groups, each with its
own error. No list of topics (null, v2+): all that the group has. v7+: require_stable, which refuses offsets
that an open transaction may still change. v9+: member id and epoch. v10: topics by id; an unknown id is
UNKNOWN_TOPIC_ID, and offsets of topics that are gone are left out of "all". A partition that is
asked for twice is told once; a group that comes more than twice is INVALID_REQUEST from there on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.repeats import REPEATS_MAX
from broker.handlers.request import Request
from coordinator.group.manager import NO_READER
from coordinator.group.offsets import Fetched, TopicPartition
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.pieces import AT_ONCE, Steps, at_once, split

GROUPS_AT_ONCE = 100
TOP_ERROR_FROM, GROUPS_FROM, READER_FROM, IDS_FROM = 2, 8, 9, 10

_Group = m.OffsetFetchResponse.OffsetFetchResponseGroup
_GroupTopic = m.OffsetFetchResponse.OffsetFetchResponseTopics
_GroupPartition = m.OffsetFetchResponse.OffsetFetchResponsePartitions
_Topic = m.OffsetFetchResponse.OffsetFetchResponseTopic
_Partition = m.OffsetFetchResponse.OffsetFetchResponsePartition
_Reader = tuple[str | None, int]


def handle(ctx: BrokerContext, request: Request[m.OffsetFetchRequest]) -> Any:
    """The answer, a `Later` where it has to wait for what was written before, a coroutine for very many."""
    body, version = request.body, request.version
    if version < GROUPS_FROM:
        if _size(ctx, body) > AT_ONCE:
            return _one_in_pieces(ctx, body, version)
        return _one_group(ctx, body, version)
    if sum(_size(ctx, each) for each in body.groups) > AT_ONCE:
        return _fetch_in_pieces(ctx, body, version)
    later = Later()
    answers = [_Group(group_id=each.group_id) for each in body.groups]
    left = len(answers)
    if not left:
        return m.OffsetFetchResponse()

    def filled() -> None:
        nonlocal left
        left -= 1
        if not left:
            later.give(m.OffsetFetchResponse(groups=answers))

    times: Counter[str] = Counter()

    for asked, answer in zip(body.groups, answers, strict=True):
        times[asked.group_id] += 1
        if times[asked.group_id] > REPEATS_MAX:
            answer.error_code = ErrorCode.INVALID_REQUEST
            filled()
        else:
            _fetch_group(ctx, asked, answer, version, body.require_stable, filled)
    return later.now_or_later()


def _size(
    ctx: BrokerContext, asked: m.OffsetFetchRequest | m.OffsetFetchRequest.OffsetFetchRequestGroup
) -> int:
    """How many things there are to look at for a group."""
    if asked.topics is None:
        return 1 + len(ctx.groups.manager().cells_of(asked.group_id))
    return 1 + len(asked.topics) + sum(len(topic.partition_indexes) for topic in asked.topics)


async def _fetch_in_pieces(
    ctx: BrokerContext, body: m.OffsetFetchRequest, version: int
) -> m.OffsetFetchResponse:
    """One group behind the other."""
    response = m.OffsetFetchResponse()
    times: Counter[str] = Counter()
    async for groups in ctx.pieces.of(body.groups, GROUPS_AT_ONCE):
        for asked in groups:
            answer = _Group(group_id=asked.group_id)
            response.groups.append(answer)
            times[asked.group_id] += 1
            if times[asked.group_id] > REPEATS_MAX:
                answer.error_code = ErrorCode.INVALID_REQUEST
            else:
                await _fill(ctx, asked, answer, version, body.require_stable)
    return response


async def _fill(
    ctx: BrokerContext,
    asked: m.OffsetFetchRequest.OffsetFetchRequestGroup,
    answer: _Group,
    version: int,
    require_stable: bool,
) -> None:
    wanted, unknown = await ctx.pieces.run(_wanted(ctx, asked, version))
    reader = _reader(asked, version)
    answer.error_code, found = await _fetched(ctx, asked.group_id, wanted, require_stable, reader)
    if found is not None:
        answer.topics = await ctx.pieces.run(_group_topics(ctx, found, version)) + unknown


async def _fetched(
    ctx: BrokerContext,
    group_id: str,
    wanted: dict[TopicPartition, None] | None,
    require_stable: bool,
    reader: _Reader = NO_READER,
) -> tuple[ErrorCode, list[Fetched] | None]:
    """Many offsets of a group, some at a time; each is as it was when it was looked at."""
    manager = ctx.groups.manager()
    cells = list(wanted or ()) if wanted is not None else manager.cells_of(group_id)
    found: list[Fetched] = []
    for some in split(cells) if cells else ([],):
        await ctx.pieces.turn()
        told = Later()
        manager.fetch_offsets(
            group_id,
            list(some),
            lambda *offsets, told=told: told.give(offsets),
            require_stable=require_stable,
            reader=reader,
        )
        error, part = await told.response()
        if part is None:
            return error, None
        # What was removed meanwhile is not part of everything any more.
        found += part if wanted is not None else [each for each in part if each.offset >= 0 or each.error]
    return ErrorCode.NONE, found


def _one_group(ctx: BrokerContext, body: m.OffsetFetchRequest, version: int) -> Any:
    later = Later()
    wanted = at_once(_named(body))

    def done(error: ErrorCode, found: list[Fetched] | None) -> None:
        later.give(at_once(_old_response(error, found, wanted, version)))

    partitions = None if wanted is None else list(wanted)
    ctx.groups.manager().fetch_offsets(body.group_id, partitions, done, require_stable=body.require_stable)
    return later.now_or_later()


async def _one_in_pieces(
    ctx: BrokerContext, body: m.OffsetFetchRequest, version: int
) -> m.OffsetFetchResponse:
    wanted = await ctx.pieces.run(_named(body))
    error, found = await _fetched(ctx, body.group_id, wanted, body.require_stable)
    return await ctx.pieces.run(_old_response(error, found, wanted, version))


def _named(body: m.OffsetFetchRequest) -> Steps[dict[TopicPartition, None] | None]:
    """The partitions that an old request names; None for all there are."""
    if body.topics is None:
        return None
    wanted: dict[TopicPartition, None] = {}
    left = AT_ONCE
    for topic in body.topics:
        for indexes in split(topic.partition_indexes):
            wanted.update(dict.fromkeys((topic.name, index) for index in indexes))
            left -= len(indexes)
            if left <= 0:
                yield
                left = AT_ONCE
    return wanted


def _old_response(
    error: ErrorCode,
    found: list[Fetched] | None,
    wanted: dict[TopicPartition, None] | None,
    version: int,
) -> Steps[m.OffsetFetchResponse]:
    response = m.OffsetFetchResponse()
    if error is not ErrorCode.NONE and version >= TOP_ERROR_FROM:
        response.error_code = error
    elif error is not ErrorCode.NONE:
        found = [Fetched(topic, index, error=error) for topic, index in wanted or ()]
    by_topic: dict[str, _Topic] = {}
    for number, each in enumerate(found or (), 1):
        if not number % AT_ONCE:
            yield
        topic = by_topic.get(each.topic)
        if topic is None:
            topic = by_topic[each.topic] = _Topic(name=each.topic)
        topic.partitions.append(_Partition(**_fields(each)))
    response.topics = list(by_topic.values())
    return response


def _fetch_group(
    ctx: BrokerContext,
    asked: m.OffsetFetchRequest.OffsetFetchRequestGroup,
    answer: _Group,
    version: int,
    require_stable: bool,
    filled: Callable[[], None],
) -> None:
    wanted, unknown = at_once(_wanted(ctx, asked, version))

    def done(error: ErrorCode, found: list[Fetched] | None) -> None:
        answer.error_code = error
        if found is not None:
            answer.topics = at_once(_group_topics(ctx, found, version)) + unknown
        filled()

    _ask(ctx, asked, wanted, version, require_stable, done)


def _wanted(
    ctx: BrokerContext, asked: m.OffsetFetchRequest.OffsetFetchRequestGroup, version: int
) -> Steps[tuple[dict[TopicPartition, None] | None, list[_GroupTopic]]]:
    """The partitions asked for, None for all there are, and the answers for topics that nobody knows."""
    if asked.topics is None:
        return None, []
    wanted: dict[TopicPartition, None] = {}
    unknown: list[_GroupTopic] = []
    left = AT_ONCE
    for topic in asked.topics:
        name = topic.name if version < IDS_FROM else _name_of(ctx, topic.topic_id)
        known = None if name is not None else _GroupTopic(topic_id=topic.topic_id)
        if known is not None:
            unknown.append(known)
        for indexes in split(topic.partition_indexes):
            if known is not None:
                known.partitions += [_GroupPartition(**_fields(_nowhere(index))) for index in indexes]
            elif name is not None:
                wanted.update(dict.fromkeys((name, index) for index in indexes))
            left -= len(indexes)
            if left <= 0:
                yield
                left = AT_ONCE
        left -= 1
        if left <= 0:
            yield
            left = AT_ONCE
    return wanted, unknown


def _nowhere(index: int) -> Fetched:
    return Fetched("", index, error=ErrorCode.UNKNOWN_TOPIC_ID)


def _ask(
    ctx: BrokerContext,
    asked: m.OffsetFetchRequest.OffsetFetchRequestGroup,
    wanted: dict[TopicPartition, None] | None,
    version: int,
    require_stable: bool,
    done: Callable[[ErrorCode, list[Fetched] | None], None],
) -> None:
    ctx.groups.manager().fetch_offsets(
        asked.group_id,
        None if wanted is None else list(wanted),
        done,
        require_stable=require_stable,
        reader=_reader(asked, version),
    )


def _reader(asked: m.OffsetFetchRequest.OffsetFetchRequestGroup, version: int) -> _Reader:
    return (asked.member_id, asked.member_epoch) if version >= READER_FROM else NO_READER


def _group_topics(ctx: BrokerContext, found: list[Fetched], version: int) -> Steps[list[_GroupTopic]]:
    by_topic: dict[str, _GroupTopic] = {}
    for number, each in enumerate(found, 1):
        if not number % AT_ONCE:
            yield
        topic = by_topic.get(each.topic)
        if topic is None:
            known = ctx.image.topics.get(each.topic)
            if version >= IDS_FROM and known is None:
                continue
            topic = by_topic[each.topic] = _GroupTopic(name=each.topic)
            if known is not None:
                topic.topic_id = known.topic_id
        topic.partitions.append(_GroupPartition(**_fields(each)))
    return list(by_topic.values())


def _fields(found: Fetched) -> dict[str, Any]:
    return {
        "partition_index": found.partition,
        "committed_offset": found.offset,
        "committed_leader_epoch": found.leader_epoch,
        "metadata": found.metadata,
        "error_code": found.error,
    }


def _name_of(ctx: BrokerContext, topic_id: bytes) -> str | None:
    topic = ctx.image.topics_by_id.get(topic_id)
    return None if topic is None else topic.name
