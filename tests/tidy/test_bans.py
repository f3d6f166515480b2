"""What no source may contain, each ban with what to use instead.

ruff's TID251 bans whole names (time.time, random, sockets ...); these need the syntax tree. The reason
for most of them is the simulation: a cluster in one process, where time, chance and files are virtual and
every run repeats.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.tidy.sources import (
    EVERYTHING,
    PRODUCT,
    name_of,
    nodes_in,
    nodes_of,
    python_files,
    report,
    tree_of,
)

# Where anything may go wrong and the rest must go on: a request, a task, a process of ours at its outer edge.
MAY_CATCH_EVERYTHING = {
    "broker/adapters/topic_writer.py",  # a coordinator that fails must not keep others' answers of the turn
    "replication/deadline_buckets.py",  # these two: a request that fails must not keep the others parked
    "replication/waiting.py",
    "broker/net/dispatch.py",
    "replication/controller/cluster_controller.py",  # an event that fails ends an epoch, not the broker
    "runtime/ticking.py",  # whatever its work raises is the answer to its caller
    "runtime/worker_main.py",  # whatever a worker's call raises is the answer to its caller
    "runtime/tasks.py",
}

# Of `os`, outside runtime: what computes on names or values. The rest goes through the FileSystem.
PURE_OS_NAMES = {
    "_exit",
    "path",
    "fspath",
    "sep",
    "PathLike",
    "environ",
    "getpid",
    "cpu_count",
    "strerror",
    "name",
}

LEFTOVERS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|NotImplementedError\(\)")


def findings_in(folders: tuple[str, ...], rule: object, exempt: frozenset[str] = frozenset()) -> list[str]:
    found: list[str] = []
    for path in python_files(folders):
        if name_of(path) not in exempt:
            found += [f"{name_of(path)}:{line}: {what}" for line, what in rule(nodes_of(path))]
    return found


def opened_files(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield node.lineno, "open(): take a runtime FileSystem by constructor"
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
            and node.attr not in PURE_OS_NAMES
        ):
            yield node.lineno, f"os.{node.attr}: take a runtime FileSystem by constructor"


def test_files_are_touched_only_through_the_runtime() -> None:
    folders = tuple(folder for folder in PRODUCT if folder not in ("runtime", "ottla"))
    findings = findings_in(folders, opened_files)
    assert not findings, report(findings)


def caught_too_much(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if not isinstance(node, ast.ExceptHandler):
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for kind in kinds:
            if kind is None:
                yield node.lineno, "bare except: name what is expected"
            elif ast.unparse(kind) in ("Exception", "BaseException") and not reraises(node):
                yield node.lineno, f"except {ast.unparse(kind)}: name what is expected, or raise it again"


def reraises(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only cleans up: its last statement raises."""
    return isinstance(handler.body[-1], ast.Raise)


def test_exceptions_are_caught_by_name() -> None:
    findings = findings_in(PRODUCT, caught_too_much, frozenset(MAY_CATCH_EVERYTHING))
    assert not findings, report(findings)


def set_iterations(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Loops whose order is a set's: set displays, set() calls, and names annotated as sets in the file."""
    annotated = {
        ast.unparse(node.target).removeprefix("self.")
        for node in nodes
        if isinstance(node, ast.AnnAssign) and is_set_type(node.annotation)
    } | {
        argument.arg
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for argument in [*node.args.args, *node.args.kwonlyargs]
        if argument.annotation is not None and is_set_type(argument.annotation)
    }
    for node in nodes:
        looped = []
        if isinstance(node, (ast.For, ast.AsyncFor)):
            looped = [node.iter]
        elif isinstance(node, (ast.ListComp, ast.DictComp)):
            looped = [generator.iter for generator in node.generators]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("list", "tuple")
        ):
            looped = node.args[:1]
        for iterated in looped:
            text = ast.unparse(iterated).removeprefix("self.")
            if isinstance(iterated, (ast.Set, ast.SetComp)) or text in annotated or text.startswith("set("):
                yield node.lineno, f"order of the set {text}: keep a dict, or loop over sorted(...)"


def is_set_type(annotation: ast.expr) -> bool:
    return ast.unparse(annotation).split("[")[0] in ("set", "frozenset", "Set", "AbstractSet")


def test_no_order_comes_from_a_set() -> None:
    findings = findings_in(PRODUCT, set_iterations)
    assert not findings, report(findings)


def test_nothing_is_left_for_later() -> None:
    findings = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in python_files(EVERYTHING)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if LEFTOVERS.search(line)
    ]
    assert not findings, report(findings)


SKIPS = {
    f"pytest.{name}" for name in ("skip", "xfail", "importorskip", "mark.skip", "mark.skipif", "mark.xfail")
}
EVASIONS = {name.rpartition(".")[2] for name in SKIPS} | {"sleep"}


def evasions(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if not isinstance(node, ast.Attribute) or node.attr not in EVASIONS:
            continue
        text = ast.unparse(node)
        if text in SKIPS:
            yield node.lineno, f"{text}: a test either runs or is not there"
        elif text == "time.sleep":
            yield node.lineno, "time.sleep: wait for a condition (tests/support/waiting.py)"


def test_tests_neither_skip_nor_sleep() -> None:
    findings = findings_in(("tests",), evasions, frozenset({"tests/support/waiting.py"}))
    assert not findings, report(findings)


def test_every_module_says_what_it_owns() -> None:
    findings = [
        f"{name_of(path)}: no docstring"
        for path in python_files((*PRODUCT, "bench", "spark_jobs"))
        if tree_of(path).body and ast.get_docstring(tree_of(path)) is None
    ]
    assert not findings, report(findings)


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (opened_files, "x = open('a')"),
        (opened_files, "import os\nos.unlink('a')"),
        (caught_too_much, "try:\n    f()\nexcept:\n    pass"),
        (caught_too_much, "try:\n    f()\nexcept (OSError, Exception):\n    pass"),
        (set_iterations, "for x in {1, 2}:\n    f(x)"),
        (
            set_iterations,
            "class A:\n    def f(self):\n        self.a: set[int] = set()\n        return list(self.a)",
        ),
        (evasions, "import pytest\npytest.skip('later')"),
    ],
)
def test_each_rule_sees_what_it_bans(rule: object, source: str) -> None:
    assert list(rule(nodes_in(ast.parse(source))))


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (opened_files, "import os\nos.path.join('a', 'b')\nhandle.open()"),
        (caught_too_much, "try:\n    f()\nexcept BaseException:\n    undo()\n    raise"),
        (set_iterations, "a: set[int] = set()\nfor x in sorted(a):\n    f(x)\nb = {x for x in a}"),
    ],
)
def test_each_rule_lets_pass_what_is_right(rule: object, source: str) -> None:
    assert not list(rule(nodes_in(ast.parse(source))))


def test_the_places_that_may_catch_everything_exist() -> None:
    root = Path(__file__).resolve().parents[2]
    assert all((root / name).exists() for name in sorted(MAY_CATCH_EVERYTHING))
