"""The search path of our own processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ottla import paths

CHECKOUT = Path(__file__).resolve().parents[3]


def test_in_a_checkout_our_packages_are_beside_ottla() -> None:
    assert paths.library_root() == CHECKOUT


def test_in_a_wheel_our_packages_are_inside_ottla(tmp_path, monkeypatch) -> None:
    (tmp_path / "_lib").mkdir()
    monkeypatch.setattr(paths, "PACKAGE_FOLDER", tmp_path)
    assert paths.library_root() == tmp_path / "_lib"


def test_own_packages_come_first_and_once(monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", ["/users/project", "/site"])
    paths.use_own_packages()
    paths.use_own_packages()
    assert sys.path == [str(CHECKOUT), "/users/project", "/site"]


def test_a_child_finds_us_before_a_users_packages_of_the_same_names(tmp_path, monkeypatch) -> None:
    for name in ("broker", "protocol", "storage", "runtime", "click", "json"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('the user has this name, too')")
    (tmp_path / "sees.py").write_text("")
    probe = tmp_path / "probe_module.py"
    probe.write_text(
        "def main(arguments):\n"
        "    import broker, protocol, storage, runtime, click, json, sees\n"
        "    print(*(module.__file__ for module in (broker, protocol, click)), *arguments)\n"
        "    return 7\n"
    )
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run(
        paths.child_command("probe_module", "a", "b c"),
        cwd=tmp_path,
        env=paths.child_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    broker, protocol, click, *arguments = done.stdout.split(maxsplit=3)
    assert Path(broker) == CHECKOUT / "broker" / "__init__.py"
    assert Path(protocol) == CHECKOUT / "protocol" / "__init__.py"
    assert Path(click).parent.parent.name == "site-packages"
    assert arguments == ["a b c\n"]


def test_a_child_is_not_configured_by_variables_meant_for_others(monkeypatch) -> None:
    monkeypatch.setenv("KAFKA_LISTENERS", "PLAINTEXT://elsewhere:1")
    monkeypatch.setenv("PYTHONPATH", "/users/project")
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    monkeypatch.setenv("TZ", "UTC")
    environment = paths.child_environment()
    assert "KAFKA_LISTENERS" not in environment
    assert "PYTHONPATH" not in environment
    assert "PYTHONOPTIMIZE" not in environment
    assert environment["TZ"] == "UTC"
