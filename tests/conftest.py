"""Fixtures that more than one folder of tests uses."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

from scripts.local.postgres import LocalPostgres, ignore_libpq_environment
from support.no_skips import pytest_make_collect_report, pytest_runtest_makereport
from support.slice import Host, TestDatabase, bootstrapped, running_host, running_postgres

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

ignore_libpq_environment()
# Before any function is imported: what Lambda's own configuration gives.
os.environ |= {
    "POWERTOOLS_METRICS_NAMESPACE": "PayPilot",
    "POWERTOOLS_SERVICE_NAME": "paypilot-test",
}


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
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """A Postgres with nothing of ours in it."""
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def database(postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> TestDatabase:
    """A fresh database that the bootstrap set up, and the environment by which the service finds it."""
    return bootstrapped(postgres, monkeypatch)
