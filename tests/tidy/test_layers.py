"""The layers of ARCHITECTURE.md, as import-linter reads them from pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_upper_layers_import_lower_ones_only() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_users_process_gets_no_broker_code_with_the_package() -> None:
    code = (
        "import sys, ottla, ottla.pytest_plugin; "
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('broker', 'storage', 'protocol', 'runtime', 'replication', 'coordinator')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"
