"""OPTIONS.md is what the commands say now."""

from __future__ import annotations

from spark_jobs.reference import PAGE, page


def test_the_page_of_options_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8").rstrip()
    assert written == "\n".join(page()).rstrip(), "run: python -m spark_jobs.reference"
