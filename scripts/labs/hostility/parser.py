"""The parser alone, guided by coverage, with atheris: `python -m scripts.labs.hostility.parser -runs=N`, as libFuzzer.

It may return a value or raise a `Problem`; anything else is a crash, and atheris writes the input down.
"""

import sys

from scripts.local import command

if __name__ == "__main__":
    # Before the imports of requirements/bench.lock: --help works without them. Every other argument is libFuzzer's.
    command.parser(__doc__).parse_known_args()

import atheris

with atheris.instrument_imports(include=["paypilot"]):
    from paypilot.decisions import LISTING, read_failed_payment
    from paypilot.http.auth import read_bearer_token
    from paypilot.http.body import read_idempotency_key, read_object
    from paypilot.http.page import read_page
    from paypilot.http.problems import Problem, problem_response
    from paypilot.http.request import Request
    from paypilot.http.response import write_event_response
    from paypilot.invoices import is_invoice_id
    from paypilot.outcomes import read_outcome_report

BODY_BYTES_MAX = 16 * 1024


def one_input(data: bytes) -> None:
    """The same bytes as a body, as a query, as a path's id, as headers and as a cursor."""
    text = data.decode("utf-8", "surrogateescape")
    for body, is_base64 in ((text, False), (data.decode("latin-1"), True)):
        headers = {"authorization": f"Bearer {text}", "idempotency-key": text}
        request = Request("POST", f"/decisions/{text}", text, headers, body, is_base64, "request")
        for read in (
            lambda request: read_failed_payment(read_object(request, BODY_BYTES_MAX)),
            lambda request: read_outcome_report(read_object(request, BODY_BYTES_MAX)),
            read_bearer_token,
            read_idempotency_key,
            lambda request: read_page(request, LISTING),
        ):
            try:
                read(request)
            except Problem as problem:
                write_event_response(problem_response(problem), request)
    is_invoice_id(text)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
