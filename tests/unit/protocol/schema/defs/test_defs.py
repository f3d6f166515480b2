"""Our definitions against Apache Kafka's own, field by field at every version.

Kafka's are the JSON resources inside the jars of 4.4.0 and 3.9.2, read here and now. Where both know a
version, 4.4.0 decides; a version that a release marks as unstable does not count. Defaults and the
ignorable flag, which belong to a field and not to a version, are those of 4.4.0 where it still has the
field.
"""

from __future__ import annotations

import functools
import json
import re
import zipfile

import pytest

from protocol.api_keys import ApiKey
from protocol.schema.cache import definition
from protocol.schema.defs import MESSAGES
from protocol.schema.model import NEW_STRUCT, TYPE_DEFAULTS, Field, Struct
from tests.support.jars import kafka_jars

JARS = ("clients", "group-coordinator", "transaction-coordinator", "share-coordinator", "storage")
RENAMED = {
    "ListConfigResourcesRequest": "ListClientMetricsResourcesRequest",
    "ListConfigResourcesResponse": "ListClientMetricsResourcesResponse",
}
#: traffic of KRaft controllers and their administration, which a broker of ours has no part in
LEFT_OUT_APIS = {52, 53, 54, 55, 59, 62, 63, 64, 70, 73, 80, 81, 82, 94}
KINDS = {"coordinator-key": "key", "coordinator-value": "value", "metadata": "record"}


@functools.cache
def schemas(release: str) -> dict[str, dict]:
    """The schemas of a release by message name."""
    found = {}
    for part in JARS:
        path = kafka_jars(release) / f"kafka-{part}-{release}.jar"
        if not path.exists():
            continue
        with zipfile.ZipFile(path) as jar:
            for name in jar.namelist():
                if re.fullmatch(r"(common/)?message/\w+\.json", name):
                    text = re.sub(r"(?m)(^|\s)//[^\"\n]*$|^\s*//.*$", "", jar.read(name).decode())
                    schema = json.loads(text)
                    found[schema["name"]] = schema
    return found


class Release:
    """One release's view of one message; `versions` is empty where it does not have it."""

    def __init__(self, release: str, name: str) -> None:
        known = schemas(release)
        if name not in known and release == "3.9.2":
            name = RENAMED.get(name, name)
        self.schema = known.get(name, {})
        self.versions = version_set(self.schema.get("validVersions", "none"))
        request = known.get(name.replace("Response", "Request"), {})
        if request.get("latestVersionUnstable"):
            self.versions -= {max(version_set(request["validVersions"]))}
        if release == "3.9.2" and name.endswith("Key"):
            # 3.9 takes the record type for the version of the key; 4.x knows the types, each with a version 0
            self.versions = set()
        self.shared = {struct["name"]: struct["fields"] for struct in self.schema.get("commonStructs", [])}

    def fields(self) -> list[dict]:
        return self.schema.get("fields", []) if self.versions else []

    def inner(self, field: dict | None) -> list[dict]:
        """The fields of a field's struct."""
        if field is None:
            return []
        return field.get("fields") or self.shared.get(field["type"].removeprefix("[]"), [])


def version_set(text: str) -> set[int]:
    if text == "none" or not text:
        return set()
    first, _, last = text.rstrip("+").partition("-")
    return set(range(int(first), 100 if text.endswith("+") else int(last or first) + 1))


def present(field: dict) -> set[int]:
    return version_set(field.get("versions") or field["taggedVersions"])


def expected(new: Release, old: Release, version: int) -> list[tuple]:
    return describe_theirs(new, old, new.fields(), old.fields(), version)


def describe_theirs(
    new: Release, old: Release, new_fields: list[dict], old_fields: list[dict], version: int
) -> list[tuple]:
    deciding = new_fields if version in new.versions else old_fields
    by_name = {field["name"]: field for field in new_fields if present(field) & new.versions}
    old_by_name = {field["name"]: field for field in old_fields}
    lines = []
    for field in deciding:
        if version not in present(field):
            continue
        name = field["name"]
        lasting = by_name.get(name, field)
        tagged = version in version_set(field.get("taggedVersions", ""))
        inner_new, inner_old = new.inner(by_name.get(name)), old.inner(old_by_name.get(name))
        lines.append(
            (
                name,
                lasting["type"],
                version in version_set(field.get("nullableVersions", "")),
                field["tag"] if tagged else None,
                their_default(lasting),
                str(lasting.get("ignorable", False)).lower() == "true",
                describe_theirs(new, old, inner_new, inner_old, version) if inner_new or inner_old else [],
            )
        )
    return lines


def their_default(field: dict) -> object:
    text, kind = field.get("default"), field["type"]
    if text == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind not in TYPE_DEFAULTS:
        return NEW_STRUCT
    if text is None or text == "":
        return TYPE_DEFAULTS[kind]
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "string":
        return text
    return float(text) if kind == "float64" else int(str(text), 0)


def describe_ours(struct: Struct, version: int) -> list[tuple]:
    return [describe_field(field, version) for field in struct.fields if version in field.versions]


def describe_field(field: Field, version: int) -> tuple:
    return (
        field.name,
        f"[]{field.element}" if field.is_array else field.element,
        version in field.nullable,
        field.tag,
        field.default,
        field.ignorable,
        describe_ours(field.struct, version) if field.struct is not None else [],
    )


@pytest.mark.parametrize("name", MESSAGES)
def test_a_definition_equals_kafkas_at_every_version(name: str) -> None:
    ours = definition(name)
    new, old = Release("4.4.0", name), Release("3.9.2", name)
    versions = new.versions | old.versions

    assert (ours.versions.first, ours.versions.last) == (min(versions), max(versions))
    assert versions == set(range(min(versions), max(versions) + 1))
    theirs = new.schema if new.versions else old.schema
    assert ours.key == theirs.get("apiKey", -1)
    assert ours.kind == KINDS.get(theirs["type"], theirs["type"])
    flexible = version_set(theirs.get("flexibleVersions", "none"))
    for version in sorted(versions):
        assert (version in ours.flexible) == (version in flexible), version
        assert describe_ours(ours.root, version) == expected(new, old, version), version


def test_every_served_api_has_both_messages() -> None:
    keys = {
        kind: {definition(name).key for name in MESSAGES if definition(name).kind == kind}
        for kind in ("request", "response")
    }
    known = {schema["apiKey"] for schema in schemas("4.4.0").values() if schema["type"] == "request"}
    assert keys["request"] == keys["response"] == known - LEFT_OUT_APIS
    assert {int(key) for key in ApiKey} == known


def test_every_record_of_an_internal_topic_has_its_messages() -> None:
    theirs = {
        name
        for name, schema in schemas("4.4.0").items()
        if schema["type"] in KINDS and "RaftVoter" not in name
    }
    ours = {name for name in MESSAGES if definition(name).kind in ("key", "value", "record")}
    assert ours == theirs
