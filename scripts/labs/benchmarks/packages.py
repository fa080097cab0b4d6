"""The function's files as a package folder holds them, to start it from and to weigh it."""

import compileall
import importlib.metadata
import py_compile
import shutil
from pathlib import Path

from scripts.deploy.package import kept

ROOT = Path(__file__).parents[3]
# What requirements.lock installs on Linux.
DISTRIBUTIONS = ("aws-lambda-powertools", "jmespath", "psycopg", "psycopg-binary", "typing-extensions")


def build(folder: Path, *, bytecode: bool, everything: bool = False) -> Path:
    """A package folder as decision.zip unpacks to; with `everything`, with what the package leaves out as well.

    Bytecode is trusted without a look at the sources.
    """
    for name in DISTRIBUTIONS:
        for file in importlib.metadata.files(name) or ():
            if file.parts[0] == ".." or "__pycache__" in file.parts or not (everything or kept(str(file))):
                continue
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(str(file.locate())), target)
    shutil.copytree(ROOT / "lambda", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    if bytecode:
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(folder, quiet=2, invalidation_mode=mode)
    return folder


def weigh(folder: Path) -> tuple[int, int]:
    """(bytes on disk, bytes as a zip)."""
    archive = Path(shutil.make_archive(str(folder), "zip", folder))
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()), archive.stat().st_size
