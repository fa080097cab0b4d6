"""Fixtures that more than one folder of tests uses."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from scripts.local.postgres import LocalPostgres, ignore_libpq_environment
from support.no_skips import pytest_make_collect_report, pytest_runtest_makereport
from support.slice import OTHER_TOKEN, TOKEN, Host, TestDatabase, bootstrapped, running_host, running_postgres

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

ignore_libpq_environment()
# Before any function is imported: what Lambda's own configuration gives.
os.environ |= {
    "POWERTOOLS_METRICS_NAMESPACE": "PayPilot",
    "POWERTOOLS_SERVICE_NAME": "paypilot-test",
}

# The one profile of every property test: nothing in it measures time, so a slow machine finds no fault of its own.
settings.register_profile("paypilot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paypilot")


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A temporary folder of this run's own, which is kept if something fails.

    pytest closes its usual one to other users each time that it starts, and a root's Postgres runs as another user: a
    second run on the same machine would take the first one's database away from it.
    """
    if config.option.basetemp is None:
        config.option.basetemp = folder = tempfile.mkdtemp(prefix="paypilot-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder) if not config.stash.get(FAILED, False) else None)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[FAILED] = exitstatus != 0


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The local host, as `make run` starts it."""
    with running_host(tmp_path_factory.mktemp("host")) as running:
        yield running


@pytest.fixture(scope="session")
def local_slice(host: Host) -> tuple[str, str, str]:
    """What the contract suite needs of a slice: its address, and the tokens of two clients."""
    return host.url, TOKEN, OTHER_TOKEN


@pytest.fixture
def slice_without_tokens(tmp_path: Path) -> Iterator[str]:
    """The address of a local host with no token configured."""
    with running_host(tmp_path / "host", DECISION_API_TOKEN="") as running:
        yield running.url


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """A Postgres with nothing of ours in it."""
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def database(postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> TestDatabase:
    """A fresh database that the bootstrap set up, and the environment by which the service finds it."""
    return bootstrapped(postgres, monkeypatch)
