"""Witness an MCP rails server: start it, shake hands as a client does, ask what must and must not match.

Exits 0 and prints each control, or 1 naming the control that failed. Without a command it starts the server
that .mcp.json tells clients to start.
"""

import argparse
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

REPOSITORY = Path(__file__).parents[1]
TOOLS = ["explain", "list_decisions", "lookup_return_code"]
UNLISTED = "R99"


class ControlFailed(Exception):
    """One control did not see what it must. The message names it and what it saw."""


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


CONTROLS: list[Callable[[Client], Awaitable[None]]] = [
    exactly_the_three_tools,
    each_declared_read_only_and_closed_world,
    positive_r11_is_row_4_and_unauthorized,
    negative_an_unlisted_code_is_row_5_and_not_matched,
]


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
    parser = argparse.ArgumentParser(description=__doc__)
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
