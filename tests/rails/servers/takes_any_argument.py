"""The real server with a tool that ignores the arguments it doesn't know, as the SDK's do."""

from mcp.server import MCPServer

import paypilot_rails_mcp
from paypilot_rails_mcp import READ_ONLY, explain, server

server.remove_tool("explain")
MCPServer.add_tool(server, explain, annotations=READ_ONLY)
paypilot_rails_mcp.main()
