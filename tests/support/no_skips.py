"""In CI a skipped test is a failure: CI installs what the tests need, so what is skipped there is tested nowhere."""

import os
from collections.abc import Generator

import pytest

# A reason that CI can do nothing about begins with one of these.
ALLOWED = ("a remote",)  # the contract suite, against a deployed slice


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_a_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_a_skip(report)
    return report


def _fail_a_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not (os.environ.get("CI") and report.skipped) or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not any(reason.startswith(allowed) for allowed in ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {reason}"
