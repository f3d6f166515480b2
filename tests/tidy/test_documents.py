"""The files and tests that the documents name are there, and each line of a map of tests names one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, nodes_of, report

MAPS = ("docs/replication-tests.md", "docs/transaction-tests.md")
DOCUMENTS = ("ARCHITECTURE.md", "README.md", "CHANGELOG.md", "SUPPORTED.md", *MAPS)
FOLDERS = "bench|broker|coordinator|ottla|protocol|replication|runtime|spark_jobs|storage|tests"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`|\]\(([\w./-]+\.md)\)")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
HEADING = ("| behaviour | proved by |", "|--|--|")
IN_A_WHEEL = ("ottla/_lib/",)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_that_is_named_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = dict.fromkeys(match[1] or match[2] for match in NAMED.finditer(text))
    findings = [
        f"{document}: {path}" for path in named if path not in IN_A_WHEEL and not (ROOT / path).exists()
    ]
    assert not findings, report(findings)


def test_every_test_that_is_named_exists() -> None:
    findings = []
    for document in DOCUMENTS:
        for path, name in NAMED_TEST.findall((ROOT / document).read_text(encoding="utf-8")):
            file = ROOT / path
            if not file.exists() or name not in functions_of(file):
                findings.append(f"{document}: {path}::{name}")
    assert not findings, report(findings)


@pytest.mark.parametrize("document", MAPS)
def test_every_line_of_a_map_names_a_test(document: str) -> None:
    lines = (ROOT / document).read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|") and line not in HEADING]
    assert rows
    findings = [f"{document}: {row}" for row in rows if not NAMED_TEST.search(row)]
    assert not findings, report(findings)


def functions_of(file: Path) -> set[str]:
    """The names of a file's functions."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in nodes_of(file) if isinstance(node, kinds)}
