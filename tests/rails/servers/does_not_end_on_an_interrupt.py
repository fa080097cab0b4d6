"""The real server without its own answer to Ctrl-C."""

import paypilot_rails_mcp

paypilot_rails_mcp.server.run("stdio")
