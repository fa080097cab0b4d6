"""Events to the handler, in a process of its own: `python -m scripts.labs.hostility.events SEED COUNT LOG`."""

import contextlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scripts.labs.hostility import findings
from scripts.labs.hostility.generate import CANARY, TOKENS, Hostile
from scripts.local import command
from scripts.local.events import Context

SHOWN = 20


def main(seed: str, count: str, log: str) -> None:
    """Send a twentieth by hypothesis, and the rest by `Hostile`."""
    out = sys.stdout
    found: list[findings.Finding] = []
    statuses: Counter[int] = Counter()
    with Path(log).open("w") as sink, contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        from paypilot.function import handler

        def ask(event: dict[str, Any]) -> None:
            try:
                answer = handler(event, Context())
                json.dumps(answer).encode()  # as the runtime sends it
            except Exception as error:  # the worst finding: no answer at all
                statuses[599] += 1
                found.append(findings.Finding("an exception", f"{type(error).__name__}: {error} from {event!r:.2000}"))
                return
            statuses[answer["statusCode"]] += 1
            found.extend(findings.of_answer(answer["statusCode"], answer["body"], event))

        by_hypothesis = int(count) // 20
        hostile = Hostile(seed)
        for _ in range(int(count) - by_hypothesis):
            ask(hostile.event())
        _hypothesis(ask, by_hypothesis)
    print(json.dumps({"statuses": statuses, "found": found[:SHOWN]}), file=out)


def _hypothesis(ask: Any, count: int) -> None:
    text = st.text().map(lambda text: f"{CANARY}{text}")
    names = st.sampled_from(["invoice_id", "failure_code", "attempt", "prior_failures"]) | text
    words = st.from_regex(r"[a-z]{1,9}", fullmatch=True)
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | text | words
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
    bodies = (
        st.dictionaries(names, values, max_size=5).map(json.dumps)
        | st.text(st.characters(exclude_categories=[])).map(lambda text: CANARY + text)
        | st.just("null")
    )
    headers = st.dictionaries(st.text(max_size=20), text, max_size=4)

    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate], derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(bodies, headers, st.sampled_from(list(TOKENS)), st.booleans())
    def asked(body: str, extra: dict[str, str], token: str, named: bool) -> None:
        ask(
            {
                "rawPath": "/decide" if named else "/decisions/in_1/outcome",
                "headers": {**extra, "authorization": f"Bearer {token}"},
                "requestContext": {"http": {"method": "POST"}, "requestId": "request", "stage": "$default"},
                "body": body,
                "isBase64Encoded": False,
            }
        )

    asked()


if __name__ == "__main__":
    main(*command.words(__doc__, "seed", "count", "log"))
