"""Build the functions' packages: decision.zip and bootstrap.zip, the same bytes from the same commit and locks.

The dependencies come from requirements.lock with --require-hashes, so a wheel that was changed on its way is refused.
"""

import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from scripts.local import command
from scripts.local.checkout import ROOT, commit

LOCK = ROOT / "requirements.lock"
LICENCES = ROOT / "THIRD_PARTY_LICENSES"

# python3.13 on Lambda is Amazon Linux 2023, glibc 2.34. pip widens no tag by itself, so both are named.
LAMBDA_PLATFORM = (
    "--platform=manylinux_2_28_aarch64",
    "--platform=manylinux2014_aarch64",
    "--implementation=cp",
    "--python-version=3.13",
)
ELF_MACHINES = {"aarch64": 183, "x86_64": 62}

# The folders and files of the dependencies that go into both packages; all else is left out.
KEPT = (
    "psycopg/",
    "psycopg_binary/",
    "psycopg_binary.libs/",  # libpq, OpenSSL for verified TLS, and what libpq is linked to
    "typing_extensions.py",  # imported by psycopg and Powertools
    "jmespath/",  # imported by Powertools' Logger
    "aws_lambda_powertools/__init__.py",
    "aws_lambda_powertools/exceptions/",
    "aws_lambda_powertools/logging/",
    "aws_lambda_powertools/metrics/",
    "aws_lambda_powertools/package_logger.py",
    "aws_lambda_powertools/shared/",
    "aws_lambda_powertools/tracing/",  # imported by Metrics
    "aws_lambda_powertools/utilities/__init__.py",
    "aws_lambda_powertools/utilities/jmespath_utils/",  # imported by Logger
    "aws_lambda_powertools/warnings/",  # imported by Metrics
)
LEFT_OUT_SUFFIXES = (".pyc", ".pyi", ".typed", ".pyx", ".c")
# Parts of what is kept that no import reaches: CockroachDB's types, libpq by ctypes, another metrics service.
LEFT_OUT_PREFIXES = (
    "psycopg/crdb/",
    "psycopg/pq/_pq_ctypes",
    "psycopg/pq/pq_ctypes",
    "aws_lambda_powertools/metrics/provider/datadog/",
)

# Old enough for zip's own limit, and the same on every machine.
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)


class PackageError(Exception):
    """The package can't be built; the message says why."""


def install(folder: Path, platform: tuple[str, ...], lock: Path = LOCK) -> None:
    """Put the locked wheels into `folder`. Raises `PackageError` if one isn't the one that the lock names."""
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--require-hashes", "--no-deps", "--only-binary=:all:", "--no-compile"),
        *(f"--target={folder}", f"--requirement={lock}", *platform),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PackageError(f"pip refused the dependencies:\n{done.stderr.strip()}")


def kept(name: str) -> bool:
    """Whether an installed file, by its path, belongs into the packages."""
    if name.endswith(LEFT_OUT_SUFFIXES) or name.startswith(LEFT_OUT_PREFIXES) or "__pycache__/" in name:
        return False
    return name.startswith(KEPT)


def check_architecture(name: str, data: bytes, machine: str) -> None:
    """Raises `PackageError` if a shared object is for another processor than `machine`."""
    if not data.startswith(b"\x7fELF"):
        return
    (found,) = struct.unpack_from("<H", data, 18)
    if found != ELF_MACHINES[machine]:
        raise PackageError(f"{name} is not for {machine}: its ELF machine is {found}")


def dependencies(platform: tuple[str, ...], machine: str) -> dict[str, bytes]:
    """The files of both packages that aren't ours, by path, with their licences."""
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder), platform)
        files = tree(Path(folder))
    for name, data in files.items():
        check_architecture(name, data, machine)
    return {name: data for name, data in files.items() if kept(name)} | {LICENCES.name: LICENCES.read_bytes()}


def tree(root: Path) -> dict[str, bytes]:
    """Every file below `root`, by its path from there."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name != "README.md"
    }


def write_zip(path: Path, files: dict[str, bytes]) -> None:
    """Write `files` so that nothing but their names and bytes decides the zip's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, ENTRY_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whatever this is built on
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name])
    partial.replace(path)


def build(out: Path, *, local: bool) -> None:
    """Write both packages into `out`: for Lambda, or for this interpreter and machine."""
    machine = os.uname().machine if local else "aarch64"
    wheels = dependencies(() if local else LAMBDA_PLATFORM, machine)
    decision = {f"paypilot/{name}": data for name, data in tree(ROOT / "lambda" / "paypilot").items()}
    bootstrap = tree(ROOT / "bootstrap" / "paypilot_bootstrap")
    write_zip(out / "decision.zip", wheels | decision | {"paypilot/COMMIT": f"{commit()}\n".encode()})
    # Without the commit: bootstrap runs again whenever this zip changes.
    write_zip(
        out / "bootstrap.zip",
        wheels | decision | {f"paypilot_bootstrap/{name}": data for name, data in bootstrap.items()},
    )


def check_reproducible(*, local: bool) -> None:
    """Build twice in two folders. Raises `PackageError` if a byte differs."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for folder in (first, second):
            build(Path(folder), local=local)
        for name in ("decision.zip", "bootstrap.zip"):
            if Path(first, name).read_bytes() != Path(second, name).read_bytes():
                raise PackageError(f"{name} differs between two builds of the same commit")
            print(f"{name}: the same bytes twice")


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the zips")
    parser.add_argument("--local", action="store_true", help="for this interpreter and machine, not for Lambda")
    parser.add_argument("--check", action="store_true", help="build twice elsewhere and compare; writes nothing")
    arguments = parser.parse_args()
    try:
        if arguments.check:
            check_reproducible(local=arguments.local)
            return
        build(arguments.out, local=arguments.local)
    except PackageError as error:
        sys.exit(f"package: {error}")
    for name in ("decision.zip", "bootstrap.zip"):
        print(f"{arguments.out / name}: {(arguments.out / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
