"""Compare the figures of a bench run with their targets: exit status 1 if one is missed.

A missed target is a measurement to explain (docs/performance.md), not a failed test: nothing else runs this.
"""

import argparse
import json
import sys
from pathlib import Path

from scripts.labs.benchmarks.harness import Row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path, nargs="?", default=Path("dist/bench.json"), help="what bench.py wrote")
    rows = [Row(**row) for row in json.loads(parser.parse_args().json.read_text())["rows"]]
    bounded = [row for row in rows if row.met is not None]
    for row in bounded:
        verdict = "kept  " if row.met else "MISSED"
        print(f"{verdict} {row.name} beside {row.reference}: {row.ratio:.2f}, target {row.target}")
    return 0 if bounded and all(row.met for row in bounded) else 1


if __name__ == "__main__":
    sys.exit(main())
