"""The published tables. One that answered is never edited: a change is a new file of another day beside it."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from paypilot.core.tables import Tables


def published_tables() -> Tables:
    """Every table in this folder: `<name>-<day>.json`."""
    return Tables({path.stem: partial(_read, path) for path in Path(__file__).parent.glob("*.json")})


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes())
