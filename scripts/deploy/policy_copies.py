"""Write the copies of the deploy identity's policies that infra/deploy_identity/tests compares them with.

Needs Terraform and its provider (`terraform -chdir=infra/deploy_identity init`), and no account. Read the diff: an
equal copy proves only that no policy changed unseen.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripts.local import command

ROOT = Path(__file__).resolve().parents[2] / "infra" / "deploy_identity"


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
    raise ValueError(
        "terraform test showed no state: run terraform -chdir=infra/deploy_identity init, and read its output"
    )


def main() -> None:
    command.parser(__doc__).parse_args()
    try:
        found = policies()
    except (OSError, ValueError) as error:
        sys.exit(f"policy_copies: {error}")
    for name, policy in found.items():
        (ROOT / "tests" / f"{name}.json").write_text(json.dumps(policy, indent=2) + "\n")
        print(f"infra/deploy_identity/tests/{name}.json")


if __name__ == "__main__":
    main()
