"""The real server of another release."""

import paypilot_rails_mcp

paypilot_rails_mcp.server._lowlevel_server.version = "0.0.1"
paypilot_rails_mcp.main()
