"""An MCP server over the rail tables (stdio). It reads what its package carries: no network, no model."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from types import UnionType, new_class
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints, is_typeddict

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    ToolAnnotations,
)
from pydantic import Field, ValidationError
from typing_extensions import TypedDict

# The wheel carries a copy of its own; in a checkout this folder isn't there, and paypilot is the checkout's.
sys.path.insert(0, str(Path(__file__).with_name("vendored")))

from paypilot import __version__
from paypilot.core import rail_types
from paypilot.core.rail_table import PERSON_RULE, RailTable, policy_at
from paypilot.core.rule import NotACode, TableRefuses
from paypilot.core.tables import NoTable
from paypilot.tables import published_tables


def pydantic_shape(shape: Any) -> Any:
    """`shape` with TypedDicts that pydantic reads: before Python 3.12 it refuses the standard library's."""
    if is_typeddict(shape):
        fields = {name: pydantic_shape(kind) for name, kind in get_type_hints(shape).items()}
        return TypedDict(shape.__name__, fields)  # type: ignore[operator]
    inner = tuple(map(pydantic_shape, get_args(shape)))
    if isinstance(shape, UnionType):
        return reduce(or_, inner)
    return get_origin(shape)[inner] if inner else shape


if TYPE_CHECKING:
    from paypilot.core.rail_types import Answer, Disposition, RailRefusal
else:
    Answer, Disposition, RailRefusal = map(
        pydantic_shape, (rail_types.Answer, rail_types.Disposition, rail_types.RailRefusal)
    )

TABLES = published_tables()
READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)

ATTEMPT_MAX = 1000
ALLOWED = {
    "rail": f"one of {', '.join(TABLES.rail_names)}",
    "code": "a string such as R01 or AM04",
    "attempt": f"an integer from 1 to {ATTEMPT_MAX}",
}
# A client that cancelled its request gets no answer, so the end of input can't wait for every one.
LAST_ANSWERS_SECONDS = 2

RailName = Annotated[str, Field(description="The payment rail.", json_schema_extra={"enum": [*TABLES.rail_names]})]
Code = Annotated[str, Field(description="The return code exactly as the bank sent it, such as R01 or AM04.")]
Attempt = Annotated[
    int, Field(strict=True, ge=1, le=ATTEMPT_MAX, description="How often this entry has failed; 1 is the first.")
]


class RailsServer(MCPServer):
    """A server that takes only the arguments it names, begins each refusal with its name, and answers every line."""

    def add_tool(self, fn: Callable[..., Any], *args: Any, **named: Any) -> None:
        """As the SDK's, for a tool that refuses an argument which `fn` doesn't have."""
        super().add_tool(fn, *args, **named)
        tool = self._tool_manager.get_tool(fn.__name__)
        assert tool is not None
        lenient = tool.fn_metadata.arg_model
        tool.fn_metadata.arg_model = new_class(lenient.__name__, (lenient,), {"extra": "forbid"})
        tool.parameters = tool.fn_metadata.arg_model.model_json_schema(by_alias=True)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """As the SDK's, with refusals in words of our own. Raises `ToolError`."""
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise ToolError(f"not_found: The tools are {', '.join(sorted(tools))}.")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                known = tools[name].input_schema["properties"]
                wrong = dict.fromkeys(str(each["loc"][0]) for each in error.__cause__.errors())
                raise ToolError(f"invalid_arguments: {' '.join(_allowed(each, known) for each in wrong)}") from None
            raise (error.__cause__ if type(error.__cause__) is ToolError else error) from None

    async def run_stdio_async(self) -> None:
        """As the SDK's, but a line that is no message is answered too, and so is what is open at the end of input."""
        to_server, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
        answer, answers = anyio.create_memory_object_stream[SessionMessage]()
        unanswered: list[str | int] = []
        answered = anyio.Event()

        async def pass_messages_on() -> None:
            async with to_server:
                async for item in lines:
                    if isinstance(item, Exception):
                        await out.send(_not_a_message(item))
                        continue
                    if isinstance(item.message, JSONRPCRequest):
                        unanswered.append(item.message.id)
                    await to_server.send(item)
                with anyio.move_on_after(LAST_ANSWERS_SECONDS):
                    while unanswered:
                        await answered.wait()

        async def pass_answers_on() -> None:
            nonlocal answered
            async with out:
                async for item in answers:
                    await out.send(item)
                    if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id in unanswered:
                        unanswered.remove(item.message.id)
                        answered.set()
                        answered = anyio.Event()

        async with stdio_server() as (lines, out), anyio.create_task_group() as tasks:
            tasks.start_soon(pass_messages_on)
            tasks.start_soon(pass_answers_on)
            server = self._lowlevel_server
            await server.run(messages, answer, server.create_initialization_options())


server = RailsServer(
    name="paypilot-rails",
    title="PayPilot rails",
    version=__version__,
    instructions=(
        "Look up what may happen next to a failed bank debit by its return code: the same debit, later, not "
        "another processor now. Where matched is false the code is not listed, and the debit must not go "
        "again. policy is PayPilot's own choice; all else carries its sources. A refusal is an answer."
    ),
    log_level="WARNING",
)


@dataclass(frozen=True)
class Decisions:
    """A rail's decisions with the codes that reach each; or, where the rail refuses, `refusal` and none."""

    rail: str
    name: str
    scope: str
    version: str
    person_rule: str
    fall_through_row: int | None
    decisions: list[Disposition]
    refusal: RailRefusal | None


@dataclass(frozen=True)
class Explanation:
    """An answer in sentences, for a person to read, beside the answer itself."""

    text: str
    answer: Answer


@server.tool(title="Look up a return code", annotations=READ_ONLY, structured_output=True)
def lookup_return_code(code: Code, rail: RailName = "ach") -> Answer:
    """Whether a returned bank debit may go again, and what must change first. An unlisted code never may."""
    answer = _rail(rail).look_up(code)
    if isinstance(answer, NotACode):
        raise ToolError(f"not_a_rail_code: {answer.detail}")
    if isinstance(answer, TableRefuses):
        # What would change it is what an agent can act on.
        raise ToolError(f"rail_refused: {answer.detail} What would change it: {answer.why['what_would_change_it']}")
    return answer


@server.tool(title="List a rail's decisions", annotations=READ_ONLY, structured_output=True)
def list_decisions(rail: RailName = "ach") -> Decisions:
    """Every decision that a rail knows, with the codes that reach it; or why the rail refuses."""
    found = _rail(rail)
    return Decisions(
        rail=found.name,
        name=found.document["name"],
        scope=found.document["scope"],
        version=found.version,
        person_rule=PERSON_RULE,
        fall_through_row=found.document["fall_through_row"],
        decisions=found.dispositions(),
        refusal=found.refusal,
    )


@server.tool(title="Explain a return code", annotations=READ_ONLY, structured_output=True)
def explain(code: Code, rail: RailName = "ach", attempt: Attempt = 1) -> Explanation:
    """The answer for a return code in sentences, with what sources disagree about and where it was read."""
    answer = lookup_return_code(code, rail)
    row = next(row for row in _rail(rail).dispositions() if row["row"] == answer["row"])
    policy, limit = policy_at(answer, attempt), answer["limit"]
    when = f"in {policy['retry_in_days']} days" if policy["retry_in_days"] else "no retry"
    now = f"PayPilot's own policy after failure {attempt}: {policy['action']}, {when}."
    sentences = [f"{rail} {answer['code']}: {answer['title'] or 'no title known'}."]
    used_up = limit is not None and policy == limit["when_used_up"]
    if limit and used_up:
        ended = f"At failure {attempt} its {limit['reinitiations']} reinitiations are used up: it may not go again."
        sentences += [ended, now, "Before that the table says:"]
    sentences.append(answer["reason"])
    if answer["matched"]:
        sentences.append(row["why"])
    if limit:
        most = f"At most {limit['reinitiations']} reinitiations within {limit['within_days']} days"
        sentences.append(f"{most} of {limit['counted_from']}.")
    if answer["family"]:
        sentences.append(f"Family: {answer['family']}.")
    if answer["refund_window"]:
        sentences.append(f"Refund window: {answer['refund_window']}.")
    if answer["suggested_action"]:
        sentences.append(f"Suggested by the sources: {answer['suggested_action']}")
    if answer["note"]:
        sentences.append(answer["note"])
    for each in answer["disagreements"]:
        sentences.append(f"Sources disagree about {each['about']}. Taken: {each['taken']}")
    if not used_up:
        sentences.append(now)
    if answer["sources"]:
        sentences.append(f"Sources: {'; '.join(source['title'] for source in answer['sources'])}.")
    return Explanation(" ".join(sentences), answer)


def _rail(name: str) -> RailTable:
    rail = TABLES.rail(name)
    if isinstance(rail, NoTable):
        raise ToolError(f"not_found: {rail.detail}")
    return rail


def _allowed(name: str, known: dict[str, Any]) -> str:
    if name in known:
        return f"{name}: Send {ALLOWED[name]}."
    # As over HTTP: ASCII escapes for the rest, cut to 64 characters.
    return f"{json.dumps(name)[1:-1][:64]}: Unknown argument. Allowed: {', '.join(known)}."


def _not_a_message(error: Exception) -> SessionMessage:
    """The answer to a line that is no JSON-RPC message. Its id can't be known, so it is null."""
    broken = isinstance(error, ValidationError) and error.errors()[0]["type"] == "json_invalid"
    said = (
        ErrorData(code=PARSE_ERROR, message="Not JSON: send one JSON-RPC 2.0 message a line.")
        if broken
        else ErrorData(code=INVALID_REQUEST, message="Not a JSON-RPC 2.0 message.")
    )
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=said))


def main() -> None:
    """Serve on standard input and output until the client closes them. Ctrl-C ends it with status 130."""
    parser = argparse.ArgumentParser(prog="paypilot-rails-mcp", description=__doc__)
    parser.add_argument("--version", action="version", version=f"PayPilot {__version__}")
    parser.parse_args()
    # There is nothing to clean up, and the thread that waits for a line can't be cancelled.
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a client that has gone reads no answer: end as other commands do
    server.run("stdio")


if __name__ == "__main__":
    main()
