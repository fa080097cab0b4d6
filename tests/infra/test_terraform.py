"""`terraform test` of each root, with a mock provider; skipped loudly where there is no Terraform or no provider."""

import json
import re
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support import terraform
from support.slice import ROOT

ROOTS = {"infra": 15, "infra/deploy_identity": 9, "infra/account_guardrails": 5}


class RandomPassword(BaseHTTPRequestHandler):
    """Secrets Manager's GetRandomPassword, the one call of the ephemeral resource that Terraform can't mock."""

    def do_POST(self) -> None:
        body = json.dumps({"RandomPassword": "a-password-of-the-tests"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/x-amz-json-1.1")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing to tell."""


@pytest.fixture(scope="module")
def secrets_manager() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), RandomPassword) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("root", ROOTS)
def test_the_roots_own_tests_pass(root: str, tmp_path: Path, secrets_manager: str) -> None:
    shutil.copytree(ROOT / "infra", tmp_path / "infra", ignore=shutil.ignore_patterns(".terraform*"))
    terraform.init(tmp_path / root)
    done = terraform.run(tmp_path / root, "test", extra={"AWS_ENDPOINT_URL_SECRETS_MANAGER": secrets_manager})
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"Success! (\d+) passed, 0 failed\.", done.stdout)
    assert passed
    assert int(passed[1]) == ROOTS[root], "runs were added or lost: count them here"
