"""The commands of the README and the requests of docs/api.md do what those pages show."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.serving import Serving
from support.slice import ROOT

TEXT = (ROOT / "README.md").read_text()
API = (ROOT / "docs" / "api.md").read_text()


def commands(text: str) -> list[str]:
    """The lines of a page's shell blocks."""
    return [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]


INLINE = re.findall(r"`((?:make|python3?|\.venv/\S+) [^`]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.S))
RUN, FIRST = commands(TEXT)
REQUESTS = [FIRST, *commands(API)]
DOCUMENTED_URL = "http://127.0.0.1:8080"
# Only planned: they serve without end, run this very test, install another environment, or have a test of their own.
LONG = {"make run", "make test", "make e2e", "make demo"}
# What a newcomer's shell holds: pytest's own settings, and those of a make around it, are not in it.
NEWCOMER = {
    name: value
    for name, value in os.environ.items()
    if name not in {"PYTHONPATH", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"} and not name.startswith("POWERTOOLS_")
}
# Each row and each run has its own.
VOLATILE = re.compile(r"(\"(?:decision_id|decided_at|next_retry_at|rules_version)\": )\"[^\"]*\"")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the README's own `make run` serves, on a free port and in a folder of its own."""
    serving = Serving(tmp_path_factory.mktemp("readme") / "data", ["bash", "-c", RUN], NEWCOMER)
    # On a fresh clone make first says what it installs.
    ready = next(line for line in iter(serving.ready, None) if line.startswith("ready "))
    assert ready.endswith("token=try-me")
    yield ready.split()[1]
    serving.end()


def ask(url: str, line: str) -> httpx.Response:
    """The answer to a curl line of the README."""
    address, headers, data = "", {}, None
    words = iter(shlex.split(line)[1:])
    for word in words:
        if word == "-H":
            name, value = next(words).split(": ")
            headers[name] = value
        elif word == "-d":
            data = next(words)
        elif word != "-s":
            address = word.replace(DOCUMENTED_URL, url)
    return httpx.request("GET" if data is None else "POST", address, headers=headers, content=data)


def test_the_requests_are_answered_as_the_pages_say(url: str) -> None:
    first, decided, replayed, *_ = answers = [ask(url, line) for line in REQUESTS]
    (shown,) = re.findall(r"```json\n(.*?)```", TEXT, re.S)
    assert _stable(json.loads(shown)) == _stable(first.json())
    assert replayed.content == decided.content and replayed.headers["idempotent-replayed"] == "true"
    refused = [line for line, answer in zip(REQUESTS, answers, strict=True) if answer.status_code == 422]
    assert {answer.status_code for answer in answers} == {200, 201, 422}
    assert len(refused) == 1 and "amount" in refused[0]


def _stable(answer: dict[str, Any]) -> Any:
    return json.loads(VOLATILE.sub(r'\1"…"', json.dumps(answer)))


@pytest.mark.parametrize("command", sorted(set(INLINE)))
def test_a_command_of_the_readme_runs_unchanged(command: str) -> None:
    line = command.replace("make ", "make --dry-run ") if command in LONG else command
    run = subprocess.run(["bash", "-c", line], cwd=ROOT, env=NEWCOMER, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout


@pytest.mark.parametrize("target", ["setup", ".venv-bench/.installed", ".venv-checkov/.installed"])
def test_make_says_how_long_an_installation_takes_before_it_begins(target: str) -> None:
    plan = subprocess.run(
        ["make", "--dry-run", "--always-make", target],
        cwd=ROOT,
        env=NEWCOMER,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert plan.index("minutes") < plan.index("-m venv") < plan.index("pip install")


def test_the_folders_of_the_map_are_there() -> None:
    for folder in re.findall(r"^\| \[?([\w./]+/)\]?", TEXT, re.M):
        assert (ROOT / folder).is_dir(), folder
