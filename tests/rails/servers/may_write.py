"""The real server with one tool that forgot to declare itself read-only."""

import paypilot_rails_mcp

paypilot_rails_mcp.server.remove_tool("explain")
paypilot_rails_mcp.server.add_tool(paypilot_rails_mcp.explain)
paypilot_rails_mcp.main()
