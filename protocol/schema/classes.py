"""Makes the classes of a message and of its structs from the model.

Each class has slots and a keyword-only constructor whose defaults are those of the schema; lists and
structs among the defaults are new ones for each object. The structs of a message are attributes of its
class under Kafka's names, however deep they lie (`FetchRequest.FetchPartition`), as in Kafka's own
generated classes.
"""

from __future__ import annotations

from typing import Final

from protocol.schema import base
from protocol.schema.model import NEW_STRUCT, NO_VERSIONS, OPEN_END, Field, Message, Struct

MODULE: Final = "protocol.messages"


class _Fresh:
    """Stands in signatures for a default that is made anew for each object."""

    def __repr__(self) -> str:
        return "..."


_FRESH: Final = _Fresh()


def make_class(message: Message) -> type[base.Message]:
    """The class of a message, with codecs still to be compiled by `protocol.schema.cache`."""
    names: dict[str, object] = {"FRESH": _FRESH}
    nested: dict[str, type[base.Struct]] = {}
    for group in message.structs.values():
        made = _make(group, base.Struct, names, f"{message.name}.{group.name}", {})
        names[f"C_{group.name}"] = nested[group.name] = made
    last = message.versions.last
    assert last != OPEN_END
    flexible_from = last + 1 if message.flexible == NO_VERSIONS else message.flexible.first
    constants: dict[str, object] = {
        "API_KEY": message.key,
        "MIN_VERSION": message.versions.first,
        "MAX_VERSION": last,
        "FLEXIBLE_FROM": flexible_from,
        "_max_elements": base.MAX_REQUEST_ELEMENTS if message.kind == "request" else base.MAX_ELEMENTS,
        "_has_records": any(
            field.element == "records"
            for group in (message.root, *message.structs.values())
            for field in group.fields
        ),
        "_decoders": {},
        "_encoders": {},
    }
    made = _make(message.root, base.Message, names, message.name, constants | nested)
    assert issubclass(made, base.Message)
    return made


def _make(
    group: Struct, parent: type, names: dict[str, object], qualified: str, members: dict[str, object]
) -> type[base.Struct]:
    parameters = ", ".join(f"{field.attribute}={_parameter(field)}" for field in group.fields)
    lines = [f"def __init__(self, *, {parameters}):" if parameters else "def __init__(self):"]
    for field in group.fields:
        name = field.attribute
        fresh = _fresh_value(field)
        value = name if fresh is None else f"{fresh} if {name} is FRESH else {name}"
        lines.append(f"    self.{name} = {value}")
    if not group.fields:
        lines.append("    pass")
    made: dict[str, object] = {}
    exec("\n".join(lines), names, made)
    namespace = {
        "__slots__": tuple(field.attribute for field in group.fields),
        "__init__": made["__init__"],
        "__module__": MODULE,
        "__qualname__": qualified,
        **members,
    }
    return type(group.name, (parent,), namespace)


def _fresh_value(field: Field) -> str | None:
    if field.default is NEW_STRUCT:
        return f"C_{field.element}()"
    return "[]" if field.default == [] else None


def _parameter(field: Field) -> str:
    return repr(field.default) if _fresh_value(field) is None else "FRESH"
