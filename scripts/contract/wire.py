"""What every model of the wire begins with."""

from pydantic import BaseModel, ConfigDict
from pydantic.config import JsonDict

DIGEST = r"^sha256:[0-9a-f]{64}$"


class Wire(BaseModel):
    """Exact types, no field beyond those named."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def absent_not_null(schema: JsonDict) -> None:
    """Of a field that may be absent and is never null: without its default."""
    schema.pop("default")
