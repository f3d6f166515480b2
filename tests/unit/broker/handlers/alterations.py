"""Short forms for IncrementalAlterConfigs and AlterConfigs in these tests."""

from __future__ import annotations

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

SET, DELETE, APPEND, SUBTRACT = range(4)
Incremental = m.IncrementalAlterConfigsRequest
Replacing = m.AlterConfigsRequest


def alter(
    broker: HandlerBroker, kind: int, name: str, *changes: tuple[str, int, str | None], check: bool = False
) -> tuple[int, str | None]:
    """Change one resource; its error and message."""
    (answer,) = alter_all(broker, [(kind, name, list(changes))], check=check)
    return answer


def alter_all(
    broker: HandlerBroker,
    resources: list[tuple[int, str, list[tuple[str, int, str | None]]]],
    version: int = 1,
    check: bool = False,
) -> list[tuple[int, str | None]]:
    request = Incremental(
        resources=[
            Incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    Incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=check,
    )
    answers = broker.call(request, version).responses
    assert [(a.resource_type, a.resource_name) for a in answers] == [r[:2] for r in resources]
    return [(answer.error_code, answer.error_message) for answer in answers]


def replace(
    broker: HandlerBroker,
    resources: list[tuple[int, str, list[tuple[str, str | None]]]],
    version: int = 2,
    check: bool = False,
) -> list[tuple[int, str | None]]:
    request = Replacing(
        resources=[
            Replacing.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[Replacing.AlterableConfig(name=key, value=value) for key, value in values],
            )
            for kind, name, values in resources
        ],
        validate_only=check,
    )
    answers = broker.call(request, version).responses
    assert [(a.resource_type, a.resource_name) for a in answers] == [r[:2] for r in resources]
    return [(answer.error_code, answer.error_message) for answer in answers]


def overrides(broker: HandlerBroker, topic: str) -> dict[str, str]:
    """What is stored for a topic."""
    stored = [dict(values) for resource, values in broker.ctx.image.configs.items() if resource.name == topic]
    return stored[0] if stored else {}
