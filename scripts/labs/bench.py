"""Measure the slice beside references on this machine: a table on standard output, everything as JSON, a plot.

Every row is a ratio of runs that took turns, so that it holds on any machine; the absolute figures are this one's.
Nothing here fails for being slow: --targets compares the figures of the last run with their targets, and a missed one
is a measurement to explain (docs/performance.md).
"""

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scripts.labs.benchmarks import cold, footprint, growth, harness, load, report, rules, warm
from scripts.local import command
from scripts.local.checkout import commit
from scripts.local.postgres import ignore_libpq_environment

PARTS = ("rules", "warm", "cold", "footprint", "load", "growth")


def main() -> int:
    parser = command.parser(__doc__)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="measure these parts")
    parser.add_argument("--quick", action="store_true", help="few rounds, a hundredth of the growth: to try the bench")
    parser.add_argument("--json", type=Path, default=Path("dist/bench.json"), help="where the figures go")
    parser.add_argument("--plot", type=Path, help="where the plot goes (docs/performance.png for the documents)")
    parser.add_argument("--folder", type=Path, help="a disk with 15 GB free, for the database")
    parser.add_argument("--targets", action="store_true", help="measure nothing: exit 1 if a target was missed")
    arguments = parser.parse_args()
    if arguments.targets:
        return compare_with_targets(arguments.json)
    ignore_libpq_environment()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        result = measure(Path(folder), arguments.only, quick=arguments.quick)
    rows = result.pop("rows")
    print(f"{json.dumps(result, indent=2)}\n\n{report.table(rows)}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({**result, "rows": [row._asdict() for row in rows]}, indent=2))
    if arguments.plot:
        report.plot(rows, arguments.plot)
    return 0


def compare_with_targets(file: Path) -> int:
    """Print whether each figure in `file` met its target; the exit status: 1 if one did not, or there is none."""
    if not file.exists():
        print(f"bench: {file} is not there: run the bench first, or name its file with --json", file=sys.stderr)
        return 1
    bounded = [row for row in (harness.Row(**row) for row in json.loads(file.read_text())["rows"]) if row.target]
    for row in bounded:
        verdict = "met   " if row.met else "MISSED"
        print(f"{verdict} {row.name} beside {row.reference}: {row.ratio:.2f}, target {row.target}")
    return 0 if bounded and all(row.met for row in bounded) else 1


def measure(folder: Path, only: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """The rows of every part in `only`, and what was measured on. Logs each row as it comes, on standard error."""
    rows: list[harness.Row] = []
    result: dict[str, Any] = {"machine": machine()}

    def take(part: str, measured: Callable[[], list[harness.Row]]) -> None:
        if part in only:
            found = measured()
            rows.extend(found)
            print(report.table(found), file=sys.stderr, flush=True)

    started = time.monotonic()
    sizes = [10_000, 100_000] if quick else [100_000, 1_000_000, 10_000_000]
    with harness.database(folder / "database") as server:
        if "growth" in only:
            result["loads"] = [loaded._asdict() for loaded in growth.load(server, sizes)]
            print(result["loads"], file=sys.stderr, flush=True)
            harness.use_database(server, "paypilot")
        take("rules", lambda: rules.measure(20_000 if quick else 200_000))
        take("warm", lambda: warm.measure(server, 100 if quick else 1000))
        take("cold", lambda: cold.measure(3 if quick else 25))
        if "cold" in only:
            result["slowest imports of a cold start"] = cold.import_profile(3 if quick else 15)
        take("footprint", lambda: footprint.measure(1000 if quick else 20_000))
        take("load", lambda: load.measure(server, *((3, 1) if quick else (5, 3))))
        take("growth", lambda: growth.measure(server, sizes, 40 if quick else 300))
    return {**result, "minutes": round((time.monotonic() - started) / 60, 1), "rows": rows}


def machine() -> dict[str, Any]:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": commit(),
        "processors": f"{os.cpu_count()} x {models[0].partition(': ')[2] if models else platform.machine()}",
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "load_average_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


if __name__ == "__main__":
    sys.exit(main())
