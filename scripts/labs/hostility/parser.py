"""The parser alone, guided by coverage, with atheris: `python -m scripts.labs.hostility.parser -runs=N`, as libFuzzer.

It may return a value or raise a `Problem`; anything else is a crash, and atheris writes the input down.
"""

import sys

import atheris

with atheris.instrument_imports(include=["paypilot"]):
    from paypilot import wire
    from paypilot.core.errors import Problem


def one_input(data: bytes) -> None:
    """The same bytes as a body, as a query, as a path's id, as headers and as a cursor."""
    text = data.decode("utf-8", "surrogateescape")
    for body, is_base64 in ((text, False), (data.decode("latin-1"), True)):
        headers = {"authorization": f"Bearer {text}", "idempotency-key": text}
        request = wire.Request("POST", f"/decisions/{text}", text, headers, body, is_base64, "request")
        for read in (
            wire.read_failed_payment,
            wire.read_outcome_report,
            wire.read_bearer_token,
            wire.read_idempotency_key,
            wire.read_page,
        ):
            try:
                read(request)
            except Problem as problem:
                wire.write_event_response(wire.problem_response(problem, "request"), request)
    wire.is_invoice_id(text)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
