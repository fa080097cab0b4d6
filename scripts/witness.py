"""Check an MCP rails server: start it, shake hands as a client does, ask what must and must not match.

Exits 0 and prints each control, or 1 naming the control that failed. Without a command it starts the server
that .mcp.json tells clients to start.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from mcp import Client, StdioServerParameters
from mcp.client.stdio import get_default_environment

from paypilot import __version__
from scripts.local import command

REPOSITORY = Path(__file__).parents[1]
TOOLS = ["explain", "list_decisions", "lookup_return_code"]
UNLISTED = "R99"
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "witness", "version": __version__},
}


class ControlFailed(Exception):
    """A control that failed; the message names it and what it saw."""


async def exactly_the_three_tools(client: Client) -> None:
    names = sorted(tool.name for tool in (await client.list_tools()).tools)
    expect(names, TOOLS)


async def each_declared_read_only_and_closed_world(client: Client) -> None:
    for tool in (await client.list_tools()).tools:
        hints = tool.annotations
        expect(hints and (hints.read_only_hint, hints.open_world_hint), (True, False), tool.name)
        expect((tool.output_schema or {}).get("type"), "object", f"{tool.name}'s output schema")


async def positive_r11_is_row_4_and_unauthorized(client: Client) -> None:
    answer = await look_up(client, "R11")
    expect((answer.get("matched"), answer.get("row"), answer.get("family")), (True, 4, "unauthorized"))


async def negative_an_unlisted_code_is_row_5_and_not_matched(client: Client) -> None:
    answer = await look_up(client, UNLISTED)
    expect((answer.get("matched"), answer.get("row")), (False, 5))


async def its_version_is_the_release(client: Client) -> None:
    expect(client.server_info.version if client.server_info else None, __version__)


async def negative_an_argument_that_is_unknown_or_no_integer_is_refused_by_name(client: Client) -> None:
    for name, value in (("atempt", 2), ("attempt", True), ("attempt", "2"), ("attempt", 2.0)):
        result = await client.call_tool("explain", {"code": "R01", name: value})
        text = getattr(result.content[0], "text", "") if result.content else ""
        expect(
            (result.is_error, text.partition(": ")[0], f" {name}: " in text), (True, "invalid_arguments", True), name
        )


async def a_line_that_is_no_message_is_answered_and_so_is_all_before_the_end_of_input(
    server: StdioServerParameters,
) -> None:
    asked = [message("initialize", HELLO, 1), *(message("tools/list", {}, number) for number in range(2, 12))]
    lines = [b"{", b"[]", *(json.dumps(each).encode() for each in asked)]
    async with await start(server) as process:
        assert process.stdin and process.stdout
        await process.stdin.send(b"\n".join(lines) + b"\n")
        await process.stdin.aclose()
        written = b"".join([part async for part in process.stdout])
    answers = [json.loads(line) for line in written.splitlines()]
    errors = [(each["id"], each["error"]["code"]) for each in answers if "error" in each]
    expect(errors, [(None, -32700), (None, -32600)], "the errors")
    expect(sorted(each["id"] for each in answers if "result" in each), [*range(1, 12)], "the ids answered")


async def an_interrupt_ends_it_quietly(server: StdioServerParameters) -> None:
    async with await start(server) as process:
        assert process.stdin and process.stdout and process.stderr
        await process.stdin.send(json.dumps(message("initialize", HELLO, 1)).encode() + b"\n")
        await process.stdout.receive()
        process.send_signal(signal.SIGINT)
        said = b"".join([part async for part in process.stderr]).decode()
        status = await process.wait()
    expect(status in {0, 128 + signal.SIGINT}, True, f"exit status {status}")
    expect(said, "", "standard error")


CONTROLS: list[Callable[[Client], Awaitable[None]]] = [
    exactly_the_three_tools,
    each_declared_read_only_and_closed_world,
    positive_r11_is_row_4_and_unauthorized,
    negative_an_unlisted_code_is_row_5_and_not_matched,
    its_version_is_the_release,
    negative_an_argument_that_is_unknown_or_no_integer_is_refused_by_name,
]
# The SDK's client can't send these: each starts its own server.
PROCESS_CONTROLS: list[Callable[[StdioServerParameters], Awaitable[None]]] = [
    a_line_that_is_no_message_is_answered_and_so_is_all_before_the_end_of_input,
    an_interrupt_ends_it_quietly,
]


def message(method: str, params: dict[str, Any], number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def start(server: StdioServerParameters) -> Process:
    """The server as a process with the environment that a client gives it."""
    environment = {**get_default_environment(), **(server.env or {})}
    return await anyio.open_process(
        [server.command, *server.args], stderr=subprocess.PIPE, cwd=server.cwd, env=environment
    )


async def look_up(client: Client, code: str) -> dict[str, Any]:
    result = await client.call_tool("lookup_return_code", {"code": code})
    expect(bool(result.is_error), False, f"an error as the answer for {code}")
    return result.structured_content or {}


def expect(seen: object, wanted: object, about: str = "") -> None:
    if seen != wanted:
        raise ControlFailed(f"{about or 'it'} is {seen!r}, not {wanted!r}")


async def witness(server: StdioServerParameters, seconds: float) -> str | None:
    """The control that failed and why, or None. Each control, the handshake too, has `seconds` to answer."""
    control = "handshake"
    try:
        with anyio.fail_after(seconds) as deadline:
            async with Client(server, mode="legacy") as client:
                print(f"witnessed: {control}, protocol {client.protocol_version}")
                for check in CONTROLS:
                    control, deadline.deadline = check.__name__, anyio.current_time() + seconds
                    await check(client)
                    print(f"witnessed: {control}")
            for check_process in PROCESS_CONTROLS:
                control, deadline.deadline = check_process.__name__, anyio.current_time() + seconds
                await check_process(server)
                print(f"witnessed: {control}")
    except Exception as failure:
        cause = first(failure)
        said = f"no answer within {seconds:g} s" if isinstance(cause, TimeoutError) else str(cause)
        return f"{control}: {said}"
    return None


def first(failure: BaseException) -> BaseException:
    """The first real exception inside the groups that the client's task groups wrap around it."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def main() -> int:
    parser = command.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="what each control may take (default 30)")
    parser.add_argument("command", nargs="*", help="the server's command line (default: that of .mcp.json)")
    arguments = parser.parse_args()
    if arguments.command:
        server = StdioServerParameters(command=arguments.command[0], args=arguments.command[1:])
    else:
        configured = json.loads((REPOSITORY / ".mcp.json").read_bytes())["mcpServers"]["paypilot-rails"]
        server = StdioServerParameters(**configured, cwd=REPOSITORY)
    failed = anyio.run(witness, server, arguments.seconds)
    print(f"witness: FAILED {failed}" if failed else "witness: every control held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
