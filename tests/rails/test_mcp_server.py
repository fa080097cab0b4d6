"""The MCP server: what it answers and declares, that it reaches nothing, and that the witness notices."""

import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

import paypilot_rails_mcp
from paypilot.tables import published_tables

REPOSITORY = Path(__file__).parents[2]
SERVERS = Path(__file__).parent / "servers"


def call(*calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of these (tool, arguments) calls through a real client session, in order."""

    async def session() -> list[Any]:
        async with Client(paypilot_rails_mcp.server) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    return anyio.run(session)


def witness(*command: str, seconds: str = "20") -> subprocess.CompletedProcess[str]:
    """Run the witness script on a server's command, or on the one that .mcp.json names."""
    script = [sys.executable, str(REPOSITORY / "scripts/witness.py"), "--seconds", seconds, "--"]
    return subprocess.run([*script, *command], capture_output=True, text=True)


def faulty(server: str) -> list[str]:
    """The command of a server under tests/rails/servers; a client passes no PYTHONPATH on."""
    path = os.pathsep.join([str(REPOSITORY / "lambda"), str(REPOSITORY / "scripts/mcp_server")])
    return ["env", f"PYTHONPATH={path}", sys.executable, str(SERVERS / server)]


def refuse_to_connect(*_args: object, **_named: object) -> None:
    raise AssertionError("a tool reached for the network")


def test_every_tool_answers_with_sockets_that_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [
        (tool, {"rail": rail, **({} if tool == "list_decisions" else {"code": code})})
        for tool in ("lookup_return_code", "list_decisions", "explain")
        for rail, code in (("ach", "R01"), ("ach", "R99"), ("sepa", "AM04"), ("bacs", "0"))
    ]

    async def session() -> list[Any]:
        async with Client(paypilot_rails_mcp.server) as client:
            for name in ("socket", "create_connection", "create_server", "getaddrinfo", "socketpair"):
                monkeypatch.setattr(socket, name, refuse_to_connect)
            with pytest.raises(AssertionError, match="reached for the network"):
                socket.create_connection(("127.0.0.1", 9))
            results = [await client.call_tool(tool, arguments) for tool, arguments in asked]
            monkeypatch.undo()
            return results

    for (tool, arguments), result in zip(asked, anyio.run(session), strict=True):
        refused = arguments["rail"] == "bacs" and tool != "list_decisions"
        assert result.is_error is refused, (tool, arguments, result.content)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("lookup_return_code", {"code": 5_550_123}, "invalid_arguments: code: "),
        ("lookup_return_code", {"code": ["canary"]}, "invalid_arguments: code: "),
        ("lookup_return_code", {}, "invalid_arguments: code: "),
        ("list_decisions", {"rail": {"canary": 1}}, "invalid_arguments: rail: "),
        ("explain", {"code": "R01", "attempt": "canary"}, "invalid_arguments: attempt: "),
        ("explain", {"code": "R01", "attempt": 5_550_123}, "invalid_arguments: attempt: "),
        ("explain", {"code": "R01", "attempt": None}, "invalid_arguments: attempt: Send an integer from 1 to 1000."),
        ("explain", {"code": ["canary"], "attempt": 0}, " attempt: "),
        ("explain", {"code": "R01", "x": "canary"}, "x: Unknown argument. Allowed: code, rail, attempt."),
        ("list_decisions", {"code": "R01"}, "code: Unknown argument. Allowed: rail."),
        ("list_decisions", {"n\x1b" + "n" * 99: 1}, "n\\u001b" + "n" * 57 + ": Unknown argument."),
        ("lookup_return_code", {"code": "canary"}, "not_a_rail_code: "),
        ("explain", {"code": "R100"}, "not_a_rail_code: "),
        ("explain", {"code": "0", "rail": "bacs"}, "rail_refused: "),
        ("lookup_return_code", {"code": "R01", "rail": "fedwire"}, "not_found: "),
        ("canary", {}, "not_found: The tools are explain, list_decisions, lookup_return_code."),
    ],
)
def test_a_refusal_begins_with_its_name_and_repeats_no_value_that_was_sent(
    tool: str, arguments: dict[str, object], said: str
) -> None:
    [result] = call((tool, arguments))
    text = result.content[0].text
    assert result.is_error
    assert re.match(r"[a-z_]+: [A-Za-z]", text)
    assert said in text
    assert not re.search("canary|5550123|pydantic|Error", text)


def test_bacs_lists_no_decision_and_says_why_and_what_would_change_it() -> None:
    [result] = call(("list_decisions", {"rail": "bacs"}))
    assert result.structured_content["decisions"] == []
    refusal = result.structured_content["refusal"]
    assert refusal["why"] and refusal["what_would_change_it"] and refusal["may_be_cited"]


def test_an_explanation_says_when_the_reinitiations_are_used_up() -> None:
    second, third = call(("explain", {"code": "R01", "attempt": 2}), ("explain", {"code": "R01", "attempt": 3}))
    assert "used up" not in second.structured_content["text"]
    assert "in 3 days" in second.structured_content["text"]
    text = third.structured_content["text"]
    # What holds at this attempt comes first.
    assert (
        text.index("are used up: it may not go again") < text.index("no retry") < text.index("It may go again as it is")
    )
    assert text.count("PayPilot's own policy") == 1


def test_every_code_of_every_rail_can_be_explained() -> None:
    asked = [
        ("explain", {"code": row["code"], "rail": rail.name})
        for rail in published_tables().rails
        for row in rail.document["codes"] + rail.document["unlisted"]
    ]
    for (_, arguments), result in zip(asked, call(*asked), strict=True):
        assert not result.is_error, (arguments, result.content)
        assert arguments["code"] in result.structured_content["text"]


def test_a_client_that_reads_no_answer_ends_it_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        [sys.executable, paypilot_rails_mcp.__file__], input=b"no message\n", stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (-signal.SIGPIPE, b"")


def test_the_witness_holds_on_the_server_that_clients_are_told_to_start() -> None:
    finished = witness()
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.count("witnessed: ") == 9


@pytest.mark.parametrize(
    ("server", "control"),
    [
        ("answers_empty.py", "positive_r11_is_row_4_and_unauthorized"),
        ("matches_everything.py", "negative_an_unlisted_code_is_row_5_and_not_matched"),
        ("one_tool_more.py", "exactly_the_three_tools"),
        ("may_write.py", "each_declared_read_only_and_closed_world"),
        ("of_another_release.py", "its_version_is_the_release"),
        ("takes_any_argument.py", "negative_an_argument_that_is_unknown_or_no_integer_is_refused_by_name"),
        (
            "drops_what_is_no_message.py",
            "a_line_that_is_no_message_is_answered_and_so_is_all_before_the_end_of_input",
        ),
        ("does_not_end_on_an_interrupt.py", "an_interrupt_ends_it_quietly"),
    ],
)
def test_the_witness_fails_and_names_the_control(server: str, control: str) -> None:
    finished = witness(*faulty(server), seconds="5")
    assert finished.returncode == 1
    assert f"FAILED {control}: " in finished.stdout, finished.stdout + finished.stderr


def test_the_witness_does_not_wait_for_a_server_that_answers_nothing() -> None:
    finished = witness(*faulty("answers_nothing.py"), seconds="1")
    assert finished.returncode == 1
    assert "FAILED handshake: no answer within 1 s" in finished.stdout, finished.stdout + finished.stderr


def test_the_wheel_holds_the_server_and_the_tables_and_runs_by_itself(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run([*pip, "--wheel-dir", tmp_path, REPOSITORY / "scripts/mcp_server"])
    [wheel] = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {Path(name).parts[0] for name in names} == {"paypilot_rails_mcp"}, "it would shadow a checkout"
    # The core and the tables, and no other folder of the function's.
    package = REPOSITORY / "lambda/paypilot"
    vendored = {path for folder in ("core", "tables") for path in (package / folder).glob("*.*")}
    assert {name.removeprefix("paypilot_rails_mcp/") for name in names} == {
        "__init__.py",
        "LICENSE",
        "vendored/paypilot/__init__.py",
        *(f"vendored/paypilot/{path.relative_to(package)}" for path in vendored),
    }

    lock = (REPOSITORY / "requirements/dev.lock").read_text().splitlines()
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(line.rstrip(" \\") for line in lock if "--hash=" not in line))
    fresh = tmp_path / "fresh"
    # By pip, which set-up has used: another installer may lack what this machine's needs to reach the index.
    run([sys.executable, "-m", "venv", fresh])
    run([fresh / "bin/python", "-m", "pip", "install", "--quiet", "-c", constraints, wheel])
    finished = witness(str(fresh / "bin/paypilot-rails-mcp"))
    assert finished.returncode == 0, finished.stdout + finished.stderr


def run(command: list[str | Path]) -> None:
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
