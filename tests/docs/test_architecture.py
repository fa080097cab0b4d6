"""docs/architecture.md describes the code that is there."""

import pkgutil
import re

import pytest

from paypilot.http import problems
from support.slice import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text()
ROW = re.compile(
    r"^\| [^|]+ \| (?P<status>\d{3}) (?P<codes>`[^|]+`) \| (?P<written>[^|]+) \| (?P<again>[^|]+) \|$", re.M
)


PROBLEMS = {problem.code: problem for problem in problems.ALL}


def test_the_failure_table_has_every_code_and_no_other() -> None:
    codes = {code for row in ROW.finditer(TEXT) for code in row["codes"].strip("`").split("` `")}
    assert codes == set(PROBLEMS)


@pytest.mark.parametrize("row", [row.groupdict() for row in ROW.finditer(TEXT)], ids=lambda row: row["codes"])
def test_a_row_of_the_failure_table_says_what_the_error_does(row: dict[str, str]) -> None:
    for code in row["codes"].strip("`").split("` `"):
        problem = PROBLEMS[code]
        assert int(row["status"]) == problem.status
        assert ("refusal" in row["written"]) == issubclass(problem, problems.Refusal)
        assert ("Retry-After" in row["again"]) == issubclass(problem, problems.AuditUnavailable)


def test_the_life_of_a_decision_names_functions_that_are_there() -> None:
    names = re.findall(r"^\d\. `([\w.]+)`", TEXT, re.M)
    assert len(names) == 6
    for name in names:
        assert pkgutil.resolve_name(f"paypilot.{name}"), name
