"""The wheel in a fresh environment, beside a user's project that has packages of our names."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
OURS = ("broker", "coordinator", "protocol", "replication", "runtime", "spark_jobs", "storage")


def run(command: list[str | Path], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built as `pip wheel` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            folder,
            CHECKOUT,
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = folder.glob("ottla-*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """A fresh environment with the wheel; its dependencies come from ours by a .pth file, for speed."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "ottla" not in entry.name:
            (dependencies / entry.name).symlink_to(entry)
    (site / "dependencies.pth").write_text(str(dependencies))
    return folder / "bin" / "python"


@pytest.fixture
def project(tmp_path) -> Path:
    """A user's project with packages of our names, which break whoever imports them."""
    for name in OURS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('a package of the user')\n")
    return tmp_path


def test_the_wheel_adds_one_import_name(wheel) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"ottla"}
    for package in OURS:
        assert f"ottla/_lib/{package}/__init__.py" in names
    assert "ottla/py.typed" in names
    assert not [name for name in names if "/tests/" in name or name.endswith(".pyc")]


def test_a_broker_starts_beside_a_users_packages_of_the_same_names(python, project) -> None:
    code = (
        "import json, sys, ottla\n"
        "with ottla.EmbeddedBroker() as broker:\n"
        "    broker.create_topic('orders', partitions=2)\n"
        "    found = sorted(path.name for path in broker.data_dir.glob('orders-*'))\n"
        "print(json.dumps([found, ottla.__file__, [name for name in sys.modules if name in "
        f"{OURS!r}]]))\n"
    )
    (project / "program.py").write_text(code)
    done = run([python, "program.py"], project, PYTHONPATH=str(project))
    found, where, imported = json.loads(done.stdout)
    assert found == ["orders-0", "orders-1"]
    assert Path(where).is_relative_to(python.parent.parent)
    assert imported == []


def test_the_command_runs_beside_a_users_packages_of_the_same_names(python, project) -> None:
    for start in ([python, "-m", "ottla"], [python, "-c", "from ottla.__main__ import main; main()"]):
        done = run([*start, "topics", "--help"], project, PYTHONPATH=str(project))
        assert "--bootstrap-server" in done.stdout


def test_the_spark_jobs_run_beside_a_users_packages_of_the_same_names(python, project) -> None:
    done = run([python, "-m", "ottla", "spark", "archive", "--help"], project, PYTHONPATH=str(project))
    assert "--bootstrap" in done.stdout


def test_a_session_of_pytest_finds_the_fixtures(python, project) -> None:
    (project / "test_users.py").write_text(
        "import pytest\n"
        "def test_it(kafka_broker, kafka_topic):\n"
        "    assert kafka_broker.bootstrap_server.startswith('127.0.0.1:')\n"
        "    with pytest.raises(ImportError, match='of the user'):\n"
        "        import broker\n"
    )
    done = run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider"], project)
    assert "1 passed" in done.stdout
