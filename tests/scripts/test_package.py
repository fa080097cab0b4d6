"""The functions' packages: what is in them, from where, and for which machine."""

import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.deploy import package
from scripts.local.checkout import commit

# What the functions import only when it is first needed.
LATER = "from aws_lambda_powertools import Logger; from aws_lambda_powertools.metrics import EphemeralMetrics; Logger()"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both packages, for this interpreter and machine."""
    folder = tmp_path_factory.mktemp("dist")
    package.build(folder, local=True)
    return folder


@pytest.mark.parametrize(
    ("name", "handler"),
    [("decision.zip", "paypilot.function"), ("bootstrap.zip", "paypilot_bootstrap.function")],
)
def test_a_package_holds_all_that_its_handler_imports(built: Path, tmp_path: Path, name: str, handler: str) -> None:
    with zipfile.ZipFile(built / name) as archive:
        archive.extractall(tmp_path)
    # Without site-packages: only the standard library and the package are there.
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {handler}; {LATER}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        env={"POWERTOOLS_METRICS_NAMESPACE": "PayPilot", "POWERTOOLS_SERVICE_NAME": "paypilot-test"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_kept_path_is_there_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / "decision.zip") as archive:
        names = archive.namelist()
    ours = [name for name in names if name.startswith("paypilot/")]
    theirs = set(names) - set(ours) - {"THIRD_PARTY_LICENSES"}
    assert {"paypilot/rds-global-bundle.pem", "paypilot/openapi.json", "paypilot/COMMIT"} <= set(ours)
    assert all(any(name.startswith(prefix) for name in theirs) for prefix in package.KEPT)
    assert all(name.startswith(package.KEPT) for name in theirs)
    assert len(theirs) + len(ours) + 1 == len(names)
    left_out = (*package.LEFT_OUT_SUFFIXES, "README.md")
    assert not [name for name in names if name.endswith(left_out) or "__pycache__" in name]


def test_the_commit_is_in_the_decision_package_only(built: Path) -> None:
    with zipfile.ZipFile(built / "decision.zip") as archive:
        assert archive.read("paypilot/COMMIT").decode().strip() == commit()
    with zipfile.ZipFile(built / "bootstrap.zip") as archive:
        assert "paypilot/COMMIT" not in archive.namelist()
        assert "paypilot_bootstrap/sql/001_roles.sql" in archive.namelist()


def test_the_bytes_depend_on_names_and_contents_only(tmp_path: Path) -> None:
    files = {"b.py": b"b", "a/a.py": b"a"}
    package.write_zip(tmp_path / "one" / "x.zip", files)
    package.write_zip(tmp_path / "two" / "x.zip", dict(reversed(files.items())))
    assert (tmp_path / "one" / "x.zip").read_bytes() == (tmp_path / "two" / "x.zip").read_bytes()


def test_a_changed_wheel_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(re.sub("sha256:[0-9a-f]{64}", "sha256:" + "0" * 64, package.LOCK.read_text()))
    with pytest.raises(package.PackageError, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        package.install(tmp_path / "installed", (), lock)


def test_a_shared_object_for_another_processor_is_refused() -> None:
    this = Path(os.path.realpath(sys.executable)).read_bytes()[:64]
    other = next(machine for machine in package.ELF_MACHINES if machine != platform.machine())
    package.check_architecture("python", this, platform.machine())
    with pytest.raises(package.PackageError, match=f"python is not for {other}"):
        package.check_architecture("python", this, other)
    package.check_architecture("a text", b"# text", other)
