"""The real server over a table whose fall-through claims a match: what the negative control is for."""

import dataclasses

import paypilot_rails_mcp
from paypilot.core.rails import Rail

honest = Rail.lookup


def lookup(self, code):
    answer = honest(self, code)
    return answer if answer.matched else dataclasses.replace(honest(self, "R01"), code=code)


Rail.lookup = lookup
paypilot_rails_mcp.main()
