"""Imports point one way, as lambda/README.md says, with no circle anywhere, and the core needs nothing but the
standard library."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAYPILOT = ROOT / "lambda" / "paypilot"
BOOTSTRAP = ROOT / "bootstrap" / "paypilot_bootstrap"
ROW = re.compile(r"^\| `(?P<module>\w+)` \|[^|]*\|(?P<ours>[^|]*)\|(?P<others>[^|]*)\|$", re.MULTILINE)


def imports(*files: Path) -> set[str]:
    """What `files` import, in full: `paypilot.wire`, `psycopg.errors`."""
    found: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level and node.module, f"{file}: imports are absolute"
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> dict[str, set[str]]:
    """Each module of `paypilot` (a folder counts as one), and what it imports."""
    found = {path.stem: imports(path) for path in PAYPILOT.glob("*.py") if path.stem != "__init__"}
    folders = {path.parent for path in PAYPILOT.glob("*/__init__.py")}
    return found | {folder.name: imports(*folder.rglob("*.py")) for folder in folders}


def table() -> dict[str, tuple[set[str], set[str]]]:
    """lambda/README.md: each module, which of ours and which others it may import."""
    rows = ROW.finditer((ROOT / "lambda" / "README.md").read_text())
    return {row["module"]: (set(row["ours"].split()), set(row["others"].split())) for row in rows}


def test_the_table_has_a_row_for_each_module_and_for_no_other() -> None:
    assert sorted(table()) == sorted(modules())


def test_a_module_may_import_only_what_stands_above_it() -> None:
    above: set[str] = set()
    for module, (ours, _) in table().items():
        assert {name.strip("`") for name in ours} <= above, f"{module} would import what may import it"
        above.add(module)


def test_the_contract_suite_imports_nothing_of_the_product_so_that_it_runs_alone() -> None:
    tops = {name.split(".")[0] for name in imports(*(ROOT / "tests" / "contract").rglob("*.py"))}
    assert "contract" in tops
    assert not tops & {"paypilot", "paypilot_bootstrap", "paypilot_rails_mcp", "scripts", "support", "tests"}


@pytest.mark.parametrize("module", sorted(modules()))
def test_a_module_imports_only_what_its_row_names(module: str) -> None:
    ours, others = table()[module]
    for name in modules()[module]:
        top, *rest = name.split(".")
        if top == "paypilot":
            assert rest[0] in {module, "__version__"} or f"`{rest[0]}`" in ours, f"paypilot.{module} imports {name}"
        else:
            assert top in sys.stdlib_module_names or f"`{top}`" in others, f"paypilot.{module} imports {name}"


def test_the_bootstrap_imports_the_function_s_code_and_never_the_other_way_round() -> None:
    tops = {name.split(".")[0] for name in imports(*BOOTSTRAP.rglob("*.py"))} - sys.stdlib_module_names
    assert tops == {"aws_lambda_powertools", "paypilot", "paypilot_bootstrap", "psycopg"}


def test_the_core_is_imported_with_no_site_packages_and_no_environment() -> None:
    names = sorted(f"paypilot.core.{path.stem}" for path in (PAYPILOT / "core").glob("*.py") if path.stem != "__init__")
    program = f"""
import importlib, sys
sys.path.insert(0, {str(PAYPILOT.parent)!r})
for name in {names!r}:
    importlib.import_module(name)
print(sorted({{name.split(".")[0] for name in sys.modules}} - sys.stdlib_module_names - {{"__main__"}}))
"""
    run = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert run.stdout == "['paypilot']\n", run.stderr


def test_the_core_has_no_clock_no_environment_and_no_input_or_output() -> None:
    core = {name.split(".")[0] for name in imports(*(PAYPILOT / "core").glob("*.py"))}
    assert core <= {"__future__", "paypilot", "collections", "functools", "hashlib", "json", "re", "typing"}


def files() -> dict[str, Path]:
    """Every module of the repository by the name that it is imported by."""
    roots = (ROOT / "lambda", ROOT / "bootstrap", ROOT / "scripts" / "mcp_server", ROOT / "tests", ROOT)
    found: dict[str, Path] = {}
    for root in roots:
        for path in [*root.glob("*/**/*.py"), *root.glob("*.py")]:
            if not any(
                part.startswith(".") or part in {"node_modules", "dist"} for part in path.parts[len(ROOT.parts) :]
            ):
                found.setdefault(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"), path)
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    paths = files()
    graph: dict[Path, set[Path]] = {}
    for path in set(paths.values()):
        names = {name for imported in imports(path) for name in (imported, imported.rpartition(".")[0])}
        graph[path] = {paths[name] for name in names if name in paths} - {path}
    TopologicalSorter(graph).prepare()  # it raises CycleError, and names the circle
    assert len(graph) > 100


def test_a_file_of_the_function_can_be_read_at_one_sitting() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in PAYPILOT.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 250} == {}
