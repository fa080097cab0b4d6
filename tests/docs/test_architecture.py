"""docs/architecture.md tells of the code that is there."""

import re
from collections.abc import Iterator

import pytest

from paypilot import function, record, service, wire
from paypilot.core import decide, errors
from support.slice import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text()
ROW = re.compile(
    r"^\| [^|]+ \| (?P<status>\d{3}) (?P<codes>`[^|]+`) \| (?P<written>[^|]+) \| (?P<again>[^|]+) \|$", re.M
)


def concrete(base: type[errors.Problem]) -> Iterator[type[errors.Problem]]:
    """Every error that has a code of its own."""
    for error in base.__subclasses__():
        if "code" in vars(error):
            yield error
        yield from concrete(error)


ERRORS = {error.code: error for error in concrete(errors.Problem)}


def test_the_failure_table_has_every_code_and_no_other() -> None:
    codes = {code for row in ROW.finditer(TEXT) for code in row["codes"].strip("`").split("` `")}
    assert codes == set(ERRORS)


@pytest.mark.parametrize("row", [row.groupdict() for row in ROW.finditer(TEXT)], ids=lambda row: row["codes"])
def test_a_row_of_the_failure_table_tells_what_the_error_does(row: dict[str, str]) -> None:
    for code in row["codes"].strip("`").split("` `"):
        error = ERRORS[code]
        assert int(row["status"]) == error.status
        assert ("refusal" in row["written"]) == issubclass(error, errors.Refusal)
        assert ("Retry-After" in row["again"]) == issubclass(error, errors.AuditUnavailable)


def test_the_life_of_a_decision_names_functions_that_are_there() -> None:
    modules = {"function": function, "service": service, "wire": wire, "record": record, "core.decide": decide}
    names = re.findall(r"^\d\. `([\w.]+)`", TEXT, re.M)
    assert len(names) == 6
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(modules.get(module) or getattr(record, module), attribute)
