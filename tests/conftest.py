"""Fixtures that more than one folder of tests uses."""

import os
from collections.abc import Iterator

import pytest

from local_postgres import LocalPostgres
from no_skips import pytest_make_collect_report, pytest_runtest_makereport
from paypilot_bootstrap.function import handler as bootstrap
from slice import ROOT, Host, TestDatabase, blank_database, running_host, service_environment

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

# Before any function is imported: what Lambda's own configuration gives. And what `make` gives to the scripts.
os.environ |= {
    "POWERTOOLS_METRICS_NAMESPACE": "PayPilot",
    "POWERTOOLS_SERVICE_NAME": "paypilot-test",
    "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in ("lambda", "bootstrap", "scripts")),
}


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The local host, as `make run` starts it."""
    with running_host(tmp_path_factory.mktemp("host")) as running:
        yield running


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """A Postgres with nothing of ours in it."""
    server = LocalPostgres(tmp_path_factory.mktemp("postgres"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def database(postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestDatabase]:
    """A fresh database that the bootstrap set up, and the environment by which the service finds it."""
    blank_database(postgres)
    service = service_environment(postgres, "paypilot")
    for name, value in service.items():
        monkeypatch.setenv(name, value)
    bootstrap({"action": "bootstrap", "master_password": postgres.password}, None)
    yield TestDatabase(postgres, "paypilot", service)
