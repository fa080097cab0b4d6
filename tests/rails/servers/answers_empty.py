"""The three tools, declared as they should be, with nothing to say."""

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("empty", log_level="ERROR")
for name in ("lookup_return_code", "list_decisions", "explain"):

    @server.tool(name=name, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def tool(code: str = "", rail: str = "ach") -> dict[str, str]:
        return {}


server.run("stdio")
