"""Measure the slice beside references on this machine: a table on standard output, everything as JSON, a plot.

Every row is a ratio of runs that took turns, so that it holds on any machine; the absolute figures are this one's.
Nothing here fails for being slow: scripts/bench_targets.py compares the JSON with the targets.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import cold, footprint, growth, harness, load, report, rules, warm

PARTS = ("rules", "warm", "cold", "footprint", "load", "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="measure these parts")
    parser.add_argument("--quick", action="store_true", help="few rounds, a hundredth of the growth: to try the bench")
    parser.add_argument("--json", type=Path, default=Path("dist/bench.json"), help="where the figures go")
    parser.add_argument("--plot", type=Path, help="where the plot goes (docs/performance.png for the documents)")
    parser.add_argument("--folder", type=Path, help="a disk with 15 GB free, for the database")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        result = measure(Path(folder), arguments.only, quick=arguments.quick)
    rows = result.pop("rows")
    print(f"{json.dumps(result, indent=2)}\n\n{report.table(rows)}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({**result, "rows": [row._asdict() for row in rows]}, indent=2))
    if arguments.plot:
        report.plot(rows, arguments.plot)


def measure(folder: Path, only: list[str], *, quick: bool) -> dict[str, Any]:
    """The rows of every part in `only`, and what was measured on."""
    started = time.monotonic()
    rows: list[harness.Row] = []
    details: dict[str, Any] = {}
    if "rules" in only:
        rows += rules.measure(20_000 if quick else 200_000)
    with harness.database(folder / "database") as server:
        sizes = [10_000, 100_000] if quick else [100_000, 1_000_000, 10_000_000]
        if "growth" in only:
            details["loads"] = [load._asdict() for load in growth.load(server, sizes)]
            print(details["loads"], file=sys.stderr)
            harness.use_database(server, "paypilot")
        if "warm" in only:
            rows += warm.measure(server, 100 if quick else 1000)
        if "cold" in only:
            rows += cold.measure(3 if quick else 25)
            details["slowest imports of a cold start"] = cold.import_profile(3 if quick else 15)
        if "footprint" in only:
            rows += footprint.measure(1000 if quick else 20_000)
        if "load" in only:
            rows += load.measure(server, *((3, 1) if quick else (8, 3)))
        if "growth" in only:
            rows += growth.measure(server, sizes, 40 if quick else 300)
    return {"machine": machine(), "minutes": round((time.monotonic() - started) / 60, 1), **details, "rows": rows}


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": commit.strip(),
        "processors": f"{os.cpu_count()} x {models[0].partition(': ')[2] if models else platform.machine()}",
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "load_average_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


if __name__ == "__main__":
    main()
