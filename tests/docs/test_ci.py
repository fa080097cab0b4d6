"""What CI does is what anyone can do: it calls make, and holds nothing that could be stolen."""

import re

from support.slice import ROOT

WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))


def test_the_workflow_runs_make_targets_and_nothing_else() -> None:
    commands = re.findall(r"run: (.*)", WORKFLOW)
    assert {"make check", "make test"} <= set(commands)
    for command in commands:
        assert command.removeprefix("make ") in TARGETS, command


def test_the_workflow_s_actions_are_pinned_by_commit() -> None:
    actions = re.findall(r"uses: (.*)", WORKFLOW)
    assert actions
    for action in actions:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_the_workflow_may_read_the_contents_and_holds_no_secret() -> None:
    assert re.findall(r"^permissions: (.*)$", WORKFLOW, re.M) == ["{}"]
    assert set(re.findall(r"permissions:\n +(.*)", WORKFLOW)) == {"contents: read"}
    assert "secrets" not in WORKFLOW
    assert "pull_request_target" not in WORKFLOW


def test_ci_runs_the_readme_s_own_test_command() -> None:
    assert "make test" in (ROOT / "README.md").read_text()
    assert re.search(r"^run test make test$", (ROOT / ".ci" / "run").read_text(), re.M)
