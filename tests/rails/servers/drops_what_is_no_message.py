"""The real server over the SDK's own reading of lines: silent where a line is no message, and at the end of input."""

from mcp.server import MCPServer

import paypilot_rails_mcp

paypilot_rails_mcp.RailsServer.run_stdio_async = MCPServer.run_stdio_async  # type: ignore[method-assign]
paypilot_rails_mcp.main()
