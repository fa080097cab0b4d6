"""A token is shown once and kept as a digest; two may serve one client; a revoked one lets nobody in."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paypilot.core.canonical import digest
from paypilot.settings import read_tokens
from scripts import issue_token
from support.slice import ROOT

Issue = Callable[..., str]


@pytest.fixture
def issue(capsys: pytest.CaptureFixture[str]) -> Issue:
    """Run the script; returns the token, which is all that it prints on standard output."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        issue_token.main([str(argument) for argument in arguments])
        return capsys.readouterr().out.rstrip("\n")

    return run


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["make", "--no-print-directory", *arguments], cwd=ROOT, capture_output=True, text=True)


def refused(*arguments: object) -> str:
    """Run the script, which refuses; returns its message."""
    with pytest.raises(SystemExit) as exit_:
        issue_token.main([str(argument) for argument in arguments])
    return str(exit_.value.code)


def clients(file: Path) -> list[str]:
    """Whose tokens the function's own reader finds in `file`."""
    return list(read_tokens(file.read_text()).values())


def test_a_token_has_256_bits_and_its_entry_holds_its_digest_only(issue: Issue, tmp_path: Path) -> None:
    token = issue("acme", "--into", tmp_path / "tokens.json")
    entry = digest(token.encode())
    assert len(token) == 43
    assert json.loads((tmp_path / "tokens.json").read_text()) == {entry: "acme"}
    assert token not in (tmp_path / "tokens.json").read_text()


def test_without_a_file_the_entry_is_printed_to_paste(capsys: pytest.CaptureFixture[str]) -> None:
    issue_token.main(["acme"])
    printed = capsys.readouterr()
    assert json.dumps({digest(printed.out.strip().encode()): "acme"}) in printed.err
    assert printed.out.strip() not in printed.err


def test_a_tfvars_file_keeps_its_other_variables(issue: Issue, tmp_path: Path) -> None:
    file = tmp_path / "tokens.auto.tfvars.json"
    file.write_text('{"region": "eu-west-1"}')
    issue("acme", "--into", file)
    document = json.loads(file.read_text())
    assert document["region"] == "eu-west-1"
    assert list(document["token_digests"].values()) == ["acme"]


def test_a_file_is_its_owners_alone_and_replaced_as_a_whole(issue: Issue, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text("{}")
    file.chmod(0o644)
    with file.open() as reader:
        issue("acme", "--into", file)
        assert reader.read() == "{}"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_one_and_the_file_that_it_leads_to_is_written(issue: Issue, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    real, link = tmp_path / "kept" / "secret.auto.tfvars.json", tmp_path / "tokens.json"
    link.symlink_to(Path("kept") / real.name)
    for _ in range(2):  # the first finds a link that leads to nothing yet
        token = issue("acme", "--into", link)
    issue("--revoke", digest(token.encode()), "--into", link)
    assert link.is_symlink()
    assert [*real.parent.iterdir()] == [real]
    assert list(json.loads(real.read_text())["token_digests"].values()) == ["acme"]


def test_what_is_no_file_stays_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokens.json")
    assert "is not a file" in refused("acme", "--into", tmp_path / "tokens.json")
    assert "is not a file" in refused("acme", "--into", tmp_path)
    assert (tmp_path / "tokens.json").is_fifo()


def test_tokens_that_are_issued_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: issue_token.issue(f"client-{n}", file), range(16)))
    assert len(clients(file)) == 16


def test_a_token_that_nobody_could_read_is_told_with_the_command_that_takes_it_back(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, str(ROOT / "scripts" / "issue_token.py"), "acme", "--into", str(file)]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert result.returncode == 1
    (entry,) = json.loads(file.read_text())
    assert result.stderr == (
        "issue_token: standard output is closed, so the token was shown to nobody; "
        f"take it back: make revoke DIGEST={entry} TOKENS={file}\n"
    )


def test_the_second_token_tells_how_to_revoke_the_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "the tokens.json"
    issue_token.main(["acme", "--into", str(file)])
    first = digest(capsys.readouterr().out.strip().encode())
    issue_token.main(["acme", "--into", str(file)])
    (command,) = re.findall("make revoke .*", capsys.readouterr().err)
    assert first in command
    assert clients(file) == ["acme", "acme"]
    subprocess.run(["bash", "-c", command], cwd=ROOT, check=True, capture_output=True)
    assert len(clients(file)) == 1
    assert first not in file.read_text()


def test_a_token_in_the_clear_is_never_printed_and_is_revoked_by_its_digest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "tokens.json"
    entry = digest(b"MYCLEARTOKEN")
    for written in ({"MYCLEARTOKEN": "acme"}, {"MYCLEARTOKEN": "acme", entry: "acme"}):
        file.write_text(json.dumps(written))
        issue_token.main(["acme", "--into", str(file)])
        said = capsys.readouterr().err
        issue_token.main(["--revoke", entry, "--into", str(file)])
        assert said.count(f"acme still has {entry}") == 1
        assert "MYCLEARTOKEN" not in said + capsys.readouterr().err + file.read_text()
        assert len(clients(file)) == 1


def test_a_digest_is_found_in_capital_and_in_small_letters(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    digits = digest(b"a token").removeprefix("sha256:")
    for stands, given in ((digits.upper(), digits), (digits, digits.upper())):
        file.write_text(json.dumps({f"sha256:{stands}": "acme"}))
        issue_token.main(["--revoke", f"sha256:{given}", "--into", str(file)])
        assert file.read_text() == "{}\n"


@pytest.mark.parametrize("client", ["", "Acme", "_acme", "acme corp", "é", "a" * 64, "acme\n"])
def test_a_bad_client_id_is_refused_and_says_what_is_allowed(client: str, tmp_path: Path) -> None:
    assert "a client id is" in refused(client, "--into", tmp_path / "tokens.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "can't be read as JSON"),
        ("[]", "is not a JSON object"),
        ('{"sha256:zz": "acme"}', "holds what the function would refuse"),
        ('{"token": "Not A Client"}', "holds what the function would refuse"),
        ('{"token_digests": {}}', "holds what the function would refuse"),
        ("55", "is not a JSON object"),
        ('{"token": NaN}', "can't be read as JSON"),
        ('{"token": "acme", "token": "zenith"}', "a name appears twice"),
        ('{"sha256:' + 64 * "a" + '": "acme", "sha256:' + 64 * "A" + '": "zenith"}', "one token belongs to one client"),
        ("\xff", "can't be read as JSON"),
        ("[" * 200_000, "can't be read as JSON"),
        *(('{"token": ' + "[" * depth + "]" * depth + "}", "left as it is") for depth in range(300, 1000, 50)),
    ],
)
def test_a_file_that_is_not_whole_is_left_as_it_is(content: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(content)
    assert why in refused("acme", "--into", file)
    assert file.read_text() == content


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"token_digests": null}', "token_digests in .* is not a JSON object"),
        ('{"token_digests": 55}', "token_digests in .* is not a JSON object"),
        ('{"token_digests": "token"}', "token_digests in .* is not a JSON object"),
        ('{"token_digests": {}, "token_digests": {}}', "a name appears twice"),
        ('{"token_digests": {"sha256:zz": "acme"}}', "holds what the function would refuse"),
    ],
)
def test_a_tfvars_file_that_is_not_whole_is_left_as_it_is(content: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.auto.tfvars.json"
    file.write_text(content)
    for arguments in (["acme"], ["--revoke", "sha256:" + 64 * "0"]):
        assert re.search(why, refused(*arguments, "--into", file))
    assert file.read_text() == content


@pytest.mark.parametrize("client", ["-x", "--help", "-", "Acme"])
def test_make_hands_a_client_id_on_as_it_is(client: str, tmp_path: Path) -> None:
    run = make("token", f"CLIENT={client}", f"TOKENS={tmp_path}/tokens.json")
    assert run.stderr.startswith("issue_token: a client id is 1-63 of")
    assert not list(tmp_path.iterdir())


def test_make_hands_a_digest_on_as_it_is(tmp_path: Path) -> None:
    run = make("revoke", "DIGEST=-x", f"TOKENS={tmp_path}/tokens.json")
    assert run.stderr.startswith("issue_token: DIGEST is sha256: and 64 hex digits")


@pytest.mark.parametrize("target", ["token", "revoke"])
def test_make_shows_the_help_where_it_is_given_nothing(target: str) -> None:
    run = make(target)
    assert (run.returncode, run.stderr) == (0, "")
    assert "make token CLIENT=acme TOKENS=tokens.json" in run.stdout


def test_what_can_not_be_done_is_said(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    unknown = "sha256:" + "0" * 64
    assert "no such entry" in refused("--revoke", unknown, "--into", file)
    assert "64 hex digits" in refused("--revoke", "sha256:00", "--into", file)
    assert "needs --into" in refused("--revoke", unknown)
    assert "no folder" in refused("acme", "--into", tmp_path / "nowhere" / "tokens.json")
    assert not list(tmp_path.iterdir())
