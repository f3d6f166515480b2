"""The files that the documents name are there."""

from __future__ import annotations

import re

import pytest

from tests.tidy.sources import ROOT, report

DOCUMENTS = ("ARCHITECTURE.md", "README.md", "CHANGELOG.md", "SUPPORTED.md")
FOLDERS = "bench|broker|coordinator|ottla|protocol|replication|runtime|spark_jobs|storage|tests"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`|\]\(([\w./-]+\.md)\)")
IN_A_WHEEL = ("ottla/_lib/",)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_that_is_named_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = dict.fromkeys(match[1] or match[2] for match in NAMED.finditer(text))
    findings = [
        f"{document}: {path}" for path in named if path not in IN_A_WHEEL and not (ROOT / path).exists()
    ]
    assert not findings, report(findings)
