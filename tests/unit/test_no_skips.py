"""A skip fails in CI, and only there."""

import pytest

pytest_plugins = ["pytester"]

SKIPS = {
    "a skipped test": "import pytest\ndef test_it():\n    pytest.skip('no such thing')",
    "a marked test": "import pytest\n@pytest.mark.skip(reason='no such thing')\ndef test_it(): ...",
    "a skipped file": "import pytest\npytest.skip('no such thing', allow_module_level=True)",
}


@pytest.mark.parametrize("content", SKIPS.values(), ids=SKIPS.keys())
def test_a_skip_fails_in_ci_and_says_its_reason(
    content: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(test_skips=content)
    result = pytester.runpytest_inprocess("-p", "no_skips")
    assert result.ret not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    result.stdout.fnmatch_lines("*skipped in CI: no such thing*")


def test_a_skip_that_ci_can_do_nothing_about_is_one_in_ci_too(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile("import pytest\ndef test_it():\n    pytest.skip('a remote can not be stopped')")
    pytester.runpytest_inprocess("-p", "no_skips").assert_outcomes(skipped=1)


def test_a_skip_is_a_skip_elsewhere(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_skips=SKIPS["a skipped test"], test_passes="def test_passes(): ...")
    result = pytester.runpytest_inprocess("-p", "no_skips")
    result.assert_outcomes(passed=1, skipped=1)
