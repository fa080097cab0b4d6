"""Write the copies that infra/iam/tests compares the deploy identity's policies with, from the policies as they are.

Needs Terraform and its provider (`terraform -chdir=infra/iam init`), and no account. What changes is for a reader of
the diff to judge: a copy that agrees proves only that nothing changed unseen.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2] / "infra" / "iam"


def policies() -> dict[str, Any]:
    """Each policy document by its name, as `terraform test` makes it with a mock provider. Raises `ValueError`."""
    command = ["terraform", f"-chdir={ROOT}", "test", "-json", "-verbose"]
    for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
        message = json.loads(line)
        if message["type"] == "test_state":
            resources = message["test_state"]["root_module"]["resources"]
            return {
                resource.get("index", resource["name"]): json.loads(resource["values"]["policy"])
                for resource in resources
                if resource["type"] == "aws_iam_policy"
            }
    raise ValueError("terraform test showed no state: run terraform -chdir=infra/iam init, and see what it says")


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    try:
        found = policies()
    except (OSError, ValueError) as error:
        sys.exit(f"iam_copies: {error}")
    for name, policy in found.items():
        (ROOT / "tests" / f"{name}.json").write_text(json.dumps(policy, indent=2) + "\n")
        print(f"infra/iam/tests/{name}.json")


if __name__ == "__main__":
    main()
