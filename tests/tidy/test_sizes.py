"""Files and functions stay small enough to be read in one go (generated code excepted)."""

from __future__ import annotations

import ast

from tests.tidy.sources import EVERYTHING, is_generated, name_of, nodes_of, python_files, report

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 69


def test_no_file_is_longer_than_500_lines() -> None:
    findings = []
    for path in python_files(EVERYTHING):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > FILE_LINES_MAX and not is_generated(path):
            findings.append(f"{name_of(path)}: {lines} lines")
    assert not findings, report(findings)


def test_no_function_reaches_70_lines() -> None:
    findings = []
    for path in python_files(EVERYTHING):
        for node in nodes_of(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX and not is_generated(path):
                    findings.append(f"{name_of(path)}:{node.lineno}: {node.name} has {lines} lines")
    assert not findings, report(findings)
