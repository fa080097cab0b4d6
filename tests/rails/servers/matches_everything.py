"""The real server over a table whose fall-through claims a match: what the negative control is for."""

import paypilot_rails_mcp
from paypilot.core.rail_table import RailTable
from paypilot.core.rail_types import Answer

honest = RailTable.answer


def answer(self: RailTable, code: str) -> Answer:
    found = honest(self, code)
    return found if found["matched"] else {**honest(self, "R01"), "code": code}


RailTable.answer = answer  # type: ignore[method-assign]
paypilot_rails_mcp.main()
