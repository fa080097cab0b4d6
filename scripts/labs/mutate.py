"""Change the core and the parser in small ways, one at a time, and see whether the unit tests notice (mutmut).

Prints the score, and the changes that survived: each is a line that no test checks, or changes nothing that can be
seen. docs/reliability.md says which.
"""

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from scripts.local import command

ROOT = Path(__file__).parents[2]
MUTATED = ("paypilot/core/*", "paypilot/http/*")
# Those whose subject is mutated. The rest start processes or databases, and would be run for every change.
TESTS = (
    *("test_canonical", "test_card_table", "test_decide", "test_rail_decisions", "test_rail_table", "test_tables"),
    "test_wire",
)

CONFIGURATION = f"""
[tool.mutmut]
source_paths = ["paypilot"]
only_mutate = {list(MUTATED)}
pytest_add_cli_args_test_selection = ["tests"]

[tool.pytest.ini_options]
addopts = "-x --import-mode=importlib -p no:cacheprovider -p no:randomly"
"""


def main() -> int:
    parser = command.parser(__doc__)
    parser.add_argument("--show", type=int, default=200, help="how many survivors to show")
    parser.add_argument("--processes", type=int, default=2, help="mutants at a time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return mutate(Path(folder), arguments.show, arguments.processes)


def mutate(folder: Path, shown: int, processes: int) -> int:
    """Run mutmut on a copy in `folder` that it can lay out its own way."""
    shutil.copytree(ROOT / "lambda" / "paypilot", folder / "paypilot", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests").mkdir()
    for name in TESTS:
        shutil.copyfile(ROOT / "tests" / "unit" / f"{name}.py", folder / "tests" / f"{name}.py")
    (folder / "pyproject.toml").write_text(CONFIGURATION)
    mutmut = [sys.executable, "-m", "mutmut"]
    ran = subprocess.run([*mutmut, "run", "--max-children", str(processes)], cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        print(ran.stdout[-3000:], ran.stderr[-3000:])
        return 1
    listed = subprocess.run([*mutmut, "results", "--all", "true"], cwd=folder, capture_output=True, text=True).stdout
    states = dict(line.strip().rsplit(": ", 1) for line in listed.splitlines() if ": " in line)
    counted = Counter(states.values())
    caught = counted["killed"] + counted["timeout"]
    judged = len(states) - counted["no tests"] - counted["skipped"]
    print(f"{caught} of {judged} changes noticed ({caught / judged:.1%}): {dict(counted)}")
    for name in [name for name, state in states.items() if state not in {"killed", "timeout"}][:shown]:
        difference = subprocess.run([*mutmut, "show", name], cwd=folder, capture_output=True, text=True).stdout
        changed = [line for line in difference.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
        print(f"\n{name} ({states[name]})\n" + "\n".join(changed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
