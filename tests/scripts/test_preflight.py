"""What a deployment lacks is said in a line each, and a broken settings file is named."""

from pathlib import Path

import pytest

from scripts.deploy import preflight


@pytest.mark.parametrize("text", ["55", "null", "[]", "{", "", "[" * 100_000])
def test_a_settings_file_that_is_no_object_is_named_and_stops_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "settings.auto.tfvars.json").write_text(text)
    with pytest.raises(SystemExit, match=r"settings\.auto\.tfvars\.json is not a JSON object"):
        preflight.settings(tmp_path)


def test_settings_are_merged_as_terraform_merges_them(tmp_path: Path) -> None:
    (tmp_path / "a.auto.tfvars.json").write_text('{"region": "eu-west-1", "name": "one"}')
    (tmp_path / "b.auto.tfvars.json").write_text('{"name": "two"}')
    assert preflight.settings(tmp_path) == {"region": "eu-west-1", "name": "two"}


@pytest.mark.parametrize("digests", [None, 55, "sha256:0", []])
def test_digests_that_are_no_object_stop_it(digests: object) -> None:
    found = {"region": "eu-west-1", "notify_email": "ops@example.com", "token_digests": digests}
    assert [name for name, good, _ in preflight.check_settings(found) if not good] == ["API tokens"]


def test_what_has_no_default_is_asked_for_and_tokens_are_not() -> None:
    assert [name for name, good, _ in preflight.check_settings({}) if not good] == ["region", "notify_email"]
