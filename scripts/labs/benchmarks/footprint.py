"""The memory of a function that goes on deciding, beside the same process before its first decision."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

from scripts.labs.benchmarks.harness import Row, decide_event, quiet
from scripts.local import command
from scripts.local.events import Context


def measure(decisions: int) -> list[Row]:
    """Needs the environment of a bootstrapped database."""
    runs = []
    for _ in range(3):
        output = subprocess.run(
            [sys.executable, "-m", "scripts.labs.benchmarks.footprint", str(decisions)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        runs.append([int(word) / 1000 for word in output.split()])
    first, warm, steady = (statistics.median(run[place] for run in runs) for place in range(3))
    return [
        Row("memory after the first decision", "MB", first, "256 MB of a function", 256, first / 256),
        Row(f"memory after {decisions:,} decisions", "MB", steady, "after a tenth of them", warm, steady / warm),
    ]


def _resident_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def _decide(decisions: int) -> None:
    from paypilot.function import handler

    context, seen = Context(), []
    with quiet():
        for number in range(decisions):
            handler(decide_event(f"{os.getpid()}-{number}"), context)
            if number + 1 in {1, decisions // 10, decisions}:
                seen.append(_resident_kilobytes())
    print(*seen)


if __name__ == "__main__":
    _decide(int(*command.words(__doc__, "decisions")))
