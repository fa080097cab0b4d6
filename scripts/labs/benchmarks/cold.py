"""Cold starts with AWS's own runtime client: from the start of the process to the answer of its first request.

The bench serves the runtime API (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html), hands out one event,
and takes the time when the answer arrives.
"""

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scripts.labs.benchmarks import packages
from scripts.labs.benchmarks.harness import TOKEN, Row, decide_event, medians
from scripts.labs.benchmarks.warm import REFERENCES

OURS, CONNECT_ONLY, RESOLVER = "paypilot.function.handler", "connect_only.handler", "resolver_build.handler"
NO_ANSWER_SECONDS = 30


class RuntimeApi(ThreadingHTTPServer):
    """Serves one event to whoever asks next, and keeps the answer and when it came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RuntimeApiHandler)
        self.event = json.dumps(decide_event("cold")).encode()
        self.answered = threading.Event()
        self.answered_at = 0.0
        self.answer = b""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A runtime that is killed while it waits for the next event closes its connection: nothing to log."""


class _RuntimeApiHandler(BaseHTTPRequestHandler):
    server: RuntimeApi
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.server.answered.is_set():
            time.sleep(NO_ANSWER_SECONDS)
        self._respond(
            200,
            self.server.event,
            {
                "Lambda-Runtime-Aws-Request-Id": "00000000-0000-4000-8000-000000000000",
                "Lambda-Runtime-Deadline-Ms": str(int(time.time() * 1000) + 10_000),
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-central-1:000000000000:function:bench",
            },
        )

    def do_POST(self) -> None:
        self.server.answer = self._body()
        self.server.answered_at = time.perf_counter()
        self.server.answered.set()
        self._respond(202, b"", {})

    def _body(self) -> bytes:
        if length := self.headers.get("Content-Length"):
            return self.rfile.read(int(length))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body

    def _respond(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Quiet."""


def measure(starts: int) -> list[Row]:
    """Needs the environment of a bootstrapped database."""
    api = RuntimeApi()
    with tempfile.TemporaryDirectory() as folder:
        folders = {
            "compiled": packages.build(Path(folder, "compiled"), bytecode=True),
            "sources": packages.build(Path(folder, "sources"), bytecode=False),
            "everything": packages.build(Path(folder, "everything"), bytecode=True, everything=True),
        }
        cases = [("compiled", OURS), ("compiled", CONNECT_ONLY), ("everything", RESOLVER)]
        cases += [("sources", OURS), ("sources", CONNECT_ONLY)]
        taken: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
        order = random.Random("cold")  # noqa: S311
        for number in range(starts + 1):
            for case in order.sample(cases, len(cases)):
                milliseconds = _start(api, folders[case[0]], case[1])
                if number:  # the first start of each fills the page cache
                    taken[case].append(milliseconds)
        on_disk, zipped = packages.weigh(folders["sources"])
    api.shutdown()
    rows = []
    for mine, reference, label, target in (
        (("compiled", OURS), ("compiled", CONNECT_ONLY), "only imports psycopg and connects", "<= 1.2"),
        (("compiled", OURS), ("everything", RESOLVER), "resolver + pydantic build", "<= 0.6"),
        (("sources", OURS), ("sources", CONNECT_ONLY), "only imports psycopg and connects", ""),
        (("sources", OURS), ("compiled", OURS), "the same with bytecode", ""),
    ):
        value, reference_value, ratio = medians([*zip(taken[mine], taken[reference], strict=True)])
        name = "cold start, first answer" + (", as packaged (sources only)" if mine[0] == "sources" else "")
        rows.append(Row(name, "ms", value, label, reference_value, ratio, target))
    rows.append(Row("package as a zip", "MB", zipped / 1e6, "unzipped", on_disk / 1e6, zipped / on_disk))
    return rows


def _start(api: RuntimeApi, folder: Path, handler: str) -> float:
    """Milliseconds from the start of the process to the answer of its first request."""
    api.answered.clear()
    environment = {
        **os.environ,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        "AWS_LAMBDA_FUNCTION_NAME": "bench",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{api.server_port}",
        "BENCH_TOKEN": TOKEN,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{folder}:{REFERENCES}",
        "_HANDLER": handler,
    }
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "awslambdaric", handler],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        if not api.answered.wait(NO_ANSWER_SECONDS):
            raise RuntimeError(f"{handler} did not answer")
    finally:
        process.kill()
        process.wait()
    answer = json.loads(api.answer)
    if answer.get("statusCode") != 200:
        raise RuntimeError(f"{handler} answered {answer}")
    return (api.answered_at - started) * 1000


def import_profile(runs: int = 7) -> list[dict[str, Any]]:
    """The ten modules whose own import takes longest in a cold start, in milliseconds, medians of `runs`."""
    seen: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        built = packages.build(Path(folder, "package"), bytecode=True)
        for _ in range(runs):
            profile = subprocess.run(
                [sys.executable, "-X", "importtime", "-c", "import paypilot.function"],
                env={**os.environ, "PYTHONPATH": str(built)},
                capture_output=True,
                text=True,
                check=True,
            ).stderr
            for microseconds, module in re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", profile):
                seen.setdefault(module, []).append(int(microseconds))
    medians = {module: statistics.median(times) / 1000 for module, times in seen.items()}
    slowest = sorted(medians, key=lambda module: -medians[module])[:10]
    total = sum(medians.values())
    return [
        {"module": module, "ms": round(medians[module], 2), "share": round(medians[module] / total, 3)}
        for module in slowest
    ]
