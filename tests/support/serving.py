"""A run of the host as a terminal starts one, for the tests of what `make run` prints, takes and leaves."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import httpx

from support.slice import ROOT, TOKEN


class Serving:
    """A run of the host in a process group of its own, as a terminal starts one."""

    def __init__(self, folder: Path, command: list[str], shell: Mapping[str, str], **environment: str) -> None:
        self.folder, self.log = folder, folder.parent / f"{folder.name}.log"
        ours = {"PORT": "0", "PAYPILOT_DATA_DIR": str(folder), "DECISION_API_TOKEN": TOKEN}
        with self.log.open("a") as stderr:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**shell, **ours, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )

    def ready(self) -> str:
        assert self.process.stdout is not None
        ready = self.process.stdout.readline().strip()
        assert ready, self.log.read_text()
        return ready

    def lines(self) -> tuple[str, str]:
        """The line that says ready, and the request to paste."""
        ready = self.ready()
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "\n"
        return ready, self.process.stdout.readline().strip()

    def url(self) -> str:
        return self.ready().split()[1]

    def decide(self, url: str, invoice: str = "in_1") -> httpx.Response:
        body = {"invoice_id": invoice, "failure_code": "card_expired"}
        return httpx.post(f"{url}/decide", json=body, headers={"authorization": f"Bearer {TOKEN}"})

    def end(self, number: int = signal.SIGTERM) -> int:
        os.killpg(self.process.pid, number)
        self.process.communicate(timeout=20)
        return self.process.returncode

    def refused(self) -> str:
        """What it said, having refused to start."""
        out, _ = self.process.communicate(timeout=30)
        said = self.log.read_text()
        assert (self.process.returncode, out) == (1, "")
        assert "Traceback" not in said
        return [line for line in said.splitlines() if not line.startswith("{")][-1]
