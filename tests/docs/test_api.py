"""The limits and routes of docs/api.md are the service's."""

import json
import re

from paypilot.decisions import COUNT_MAX
from paypilot.http.page import LIMIT_DEFAULT, LIMIT_MAX
from paypilot.outcomes import REPORTED_FOR_A_RATE_MIN
from paypilot.routes import KIB, ROUTES
from support.slice import ROOT

TEXT = (ROOT / "docs" / "api.md").read_text()


def test_the_route_table_has_every_route_and_no_other() -> None:
    table = TEXT[: TEXT.index("## Which client")]
    assert set(re.findall(r"`((?:GET|POST) /[^`]*)`", table)) == {route.name for route in ROUTES}


def test_the_limits_are_those_of_the_code() -> None:
    assert f"{LIMIT_DEFAULT} entries a page. `limit` takes 1-{LIMIT_MAX}" in TEXT
    assert f"fewer than {REPORTED_FOR_A_RATE_MIN} invoices" in TEXT
    assert f"| `attempt`, `prior_failures` | {COUNT_MAX} |" in TEXT
    assert {route.body_bytes_max // KIB for route in ROUTES} == {0, 16} and "| body | 16 KiB |" in TEXT


def test_the_rate_limit_is_terraform_s_default() -> None:
    default = re.search(r'"throttle".*?rate = (\d+), burst = (\d+)', (ROOT / "infra/variables.tf").read_text(), re.S)
    assert default and f"| {default[1]}, in bursts of {default[2]} (" in TEXT


def test_the_codes_that_need_no_translation_are_in_the_newest_card_table() -> None:
    newest = max((ROOT / "lambda/paypilot/tables").glob("card-*.json"))
    rules = {row["rule"] for row in json.loads(newest.read_text())["rules"]}
    assert {"insufficient_funds", "generic_decline", "direct_debit_not_retried", "default"} <= rules
