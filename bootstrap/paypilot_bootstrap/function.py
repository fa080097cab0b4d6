"""The bootstrap Lambda: schema and roles with the master user's rights, then the proof with the service's.

Reachable from no route. Events: `{"action": "bootstrap", "master_password": "…"}` and `{"action": "prove"}`.
"""

import os
import time
from typing import Any

import psycopg
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from paypilot.record.database import connect
from paypilot.settings import read_settings
from paypilot_bootstrap.migrate import migrate
from paypilot_bootstrap.proof.attempt import Proof, as_data
from paypilot_bootstrap.proof.prove import prove, prove_owner

settings = read_settings(os.environ)
logger = Logger(service=settings.service)

# On RDS a new master password takes effect a little after the change completes.
LOGIN_SECONDS, LOGIN_PAUSE_SECONDS = 60, 2


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Bootstrap or prove, and return `{"schema_version", "proved", "proofs"}` (`schema_version` is null for prove).

    Raises `MigrationError`, `ProofFailed` (naming what failed), and `ValueError` for another event.
    """
    iam_login = read_settings(os.environ).iam_login
    version: int | None = None
    proofs: list[Proof] = []
    try:
        if event.get("action") == "bootstrap":
            version, proofs = _bootstrap(event, iam_login=iam_login)
        elif event.get("action") != "prove":
            raise ValueError("action is bootstrap or prove")
        with connect(iam_login=iam_login) as connection:
            proofs += prove(connection)
    except Exception as error:
        _count("ProofFailed")
        logger.error("not proved", exception=type(error).__name__)
        raise
    _count("ProofPassed")
    logger.info("proved", proofs=len(proofs), schema_version=version)
    return {"schema_version": version, "proved": True, "proofs": as_data(proofs)}


def _bootstrap(event: dict[str, Any], *, iam_login: bool) -> tuple[int, list[Proof]]:
    # Outside AWS the service's password is libpq's own; with IAM login it has none.
    service_password = None if iam_login else os.environ.get("PGPASSWORD")
    with _master_connection(event["master_password"]) as connection:
        version = migrate(connection, service_password)
        return version, prove_owner(connection)


def _master_connection(password: str) -> psycopg.Connection[Any]:
    give_up = time.monotonic() + LOGIN_SECONDS
    while True:
        try:
            return psycopg.connect(
                user=os.environ["PAYPILOT_MASTER_USER"],
                password=password,
                autocommit=True,
                connect_timeout=10,
                application_name="paypilot-bootstrap",
                # As the service's own connection: it may go by way of a pooler.
                prepare_threshold=None,
                options="",
                client_encoding="UTF8",
            )
        except psycopg.OperationalError:
            if time.monotonic() > give_up:
                raise
            time.sleep(LOGIN_PAUSE_SECONDS)


def _count(name: str) -> None:
    metrics = EphemeralMetrics(namespace=settings.metrics_namespace, service=settings.service)
    metrics.add_metric(name, MetricUnit.Count, 1)
    metrics.flush_metrics()
