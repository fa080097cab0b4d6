"""The real server with a fourth tool."""

import paypilot_rails_mcp


@paypilot_rails_mcp.server.tool()
def retry_now(code: str) -> str:
    return "retried"


paypilot_rails_mcp.main()
