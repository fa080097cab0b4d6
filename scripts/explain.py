"""Explain a recorded decision, and decide it again by the table that it names.

The input is a decision, or a page of GET /decisions/{invoice_id}, as JSON. The whole body is compared with what the
table decides, and each field that differs, is missing or is unknown is named. The exit status is 1 if there is one, or
if no published table decides this.

The record isn't read: a decision that agrees with its table may still be one that the service never took.
"""

import json
import signal
import sys
import textwrap
import uuid
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from paypilot.core.card_table import CardTable
from paypilot.core.decide import Decision, FailedPayment, apply_rule
from paypilot.core.rule import NotACode, Rule
from paypilot.decisions import StoredDecision, read_failed_payment
from paypilot.http.body import STRICT_JSON
from paypilot.http.problems import Refusal
from paypilot.tables import published_tables
from scripts.local import command


class Unexplained(Exception):
    """A decision that can't be decided again; the message says why, and repeats no input."""


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("file", nargs="?", help="a file; - is standard input, as is none")
    name = parser.parse_args().file
    if name is None and sys.stdin.isatty():
        parser.print_help()
        return
    file = None if name in {None, "-"} else Path(name)
    try:
        decisions = read_decisions(file)
    except Unexplained as error:
        sys.exit(f"explain: {error}")
    failed = False
    for number, recorded in enumerate(decisions, 1):
        try:
            failed |= bool(explain(recorded))
        except (Unexplained, RecursionError) as error:
            failed = True
            why = error if isinstance(error, Unexplained) else "no decision is nested so deeply"
            print(f"explain: decision {number} of {len(decisions)}: {why}", file=sys.stderr)
    sys.exit(1 if failed else 0)


def read_decisions(file: Path | None) -> list[Any]:
    """The decisions in `file`, or in standard input. Raises `Unexplained`."""
    name = "standard input" if file is None else str(file)
    try:
        text = sys.stdin.buffer.read() if file is None else file.read_bytes()
        if not text.strip():
            raise Unexplained(f"{name} is empty: send a decision as JSON, or name a file")
        # With a byte order mark or without, as an editor or a shell of Windows saves it.
        document = STRICT_JSON.decode(text.decode(json.detect_encoding(text)))
    except OSError as error:
        raise Unexplained(f"{name} can't be read: {error.strerror}") from error
    except Refusal as error:
        raise Unexplained(f"{name} is not valid JSON: {error.detail}") from error
    except (ValueError, RecursionError) as error:
        raise Unexplained(f"{name} is not valid JSON") from error
    decisions = document.get("decisions", [document]) if isinstance(document, dict) else None
    if not isinstance(decisions, list):
        raise Unexplained(f"{name} is neither a decision nor a page of them")
    if not decisions:
        raise Unexplained(f"{name} is a page without a decision: there is nothing to explain")
    return decisions


def explain(recorded: object) -> list[str]:
    """Print the reasons of one decision; the names of the fields that are not as its table decides.

    Raises `Unexplained`.
    """
    if not isinstance(recorded, dict):
        raise Unexplained("it is not a JSON object")
    payment = read_payment(recorded)
    decision, reasons = decide_again(payment, recorded.get("rules_version"))
    try:
        decision_id, decided_at = uuid.UUID(recorded["decision_id"]), datetime.fromisoformat(recorded["decided_at"])
        if decided_at.tzinfo is None:
            raise ValueError("no time zone")
        expected = StoredDecision(decision_id, payment, decision, decided_at).fields()
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise Unexplained(
            "decision_id and decided_at are a UUID and a time with its zone, as the record has"
        ) from error
    differing = differences(expected, recorded)
    print(f"decision {expected['decision_id']} of invoice {payment.invoice_id}, {expected['decided_at']}")
    report("asked", f"{payment.failure_code}, attempt {payment.attempt}, {payment.prior_failures} prior failures")
    report("table", decision.rules_version)
    report("rule", f"{decision.rule}, {'matched' if decision.matched else 'the code fell through'}")
    for name, text in reasons:
        report(name, text)
    report("risk", f"{decision.churn_risk}{', so a retry comes one day sooner' if decision.escalated else ''}")
    days = decision.retry_in_days
    report(
        "answer", f"{decision.action}, {decision.tone}, {'never retried' if days is None else f'retried in {days} d'}"
    )
    # On one line with the digest's first digits; the whole digest is printed above.
    agrees = f"agrees with the table of digest {decision.rules_version[:19]}...; no record was read"
    report("replay", f"DIFFERS in {', '.join(differing)}" if differing else agrees)
    print()
    return differing


def read_payment(recorded: Mapping[str, Any]) -> FailedPayment:
    """What was asked, read as the service reads it. Raises `Unexplained`."""
    asked = {name: recorded[name] for name in FailedPayment._fields if name in recorded}
    try:
        return read_failed_payment(asked)
    except Refusal as refusal:
        raise Unexplained(f"nothing was decided for such a request. {refusal.detail}") from refusal


def decide_again(payment: FailedPayment, version: object) -> tuple[Decision, list[tuple[str, str]]]:
    """The decision by the table of `version`, and that table's reasons for it. Raises `Unexplained`."""
    tables = published_tables()
    table = tables.versions.get(version) if isinstance(version, str) else None
    if table is None:
        raise Unexplained("no published table has the version that it names")
    meant_for = tables.name_for(payment.failure_code)
    if isinstance(meant_for, str) and meant_for != table.name:
        raise Unexplained("the table of the version that it names doesn't answer for its failure code")
    rule = meant_for if isinstance(meant_for, NotACode) else table.rule(payment.failure_code, payment.attempt)
    if not isinstance(rule, Rule):
        raise Unexplained(f"its failure code is refused, and never decided. {rule.detail}")
    decision = apply_rule(rule, payment)
    if isinstance(table, CardTable):
        row = table.rows[decision.rule]
        return decision, [("why", row["why"]), ("source", row["source"])]
    answer = table.answer(payment.failure_code.removeprefix(f"{table.name}:"))
    disposition = next(each for each in table.dispositions() if each["row"] == answer["row"])
    sources = "; ".join(f"{each['title']}, {each['address']}" for each in answer["sources"] or disposition["sources"])
    reasons = [("why", disposition["why"]), ("says", answer["reason"]), ("source", sources)]
    if answer["limit"] and decision.rail and decision.rail["limit_used_up"]:
        used_up = f"attempt {payment.attempt}: the {answer['limit']['reinitiations']} reinitiations are used up, and it"
        reasons.insert(0, ("limit", f"{used_up} may not go again. What follows is what the table says before that."))
    return decision, reasons


def differences(expected: Mapping[str, object], recorded: Mapping[str, object]) -> list[str]:
    """The names of the fields that one of them has otherwise, or alone; a value's type counts, and not its order."""

    def written(fields: Mapping[str, object]) -> dict[str, str]:
        # As JSON: Python takes 1, 1.0 and true for equal.
        return {name: json.dumps(value, sort_keys=True) for name, value in fields.items()}

    decided, found = written(expected), written(recorded)
    differing = [name for name in dict.fromkeys([*decided, *found]) if decided.get(name) != found.get(name)]
    return [name if name in decided else json.dumps(name) for name in differing]


def report(name: str, text: str) -> None:
    print(textwrap.fill(text, 100, initial_indent=f"  {name:<8}", subsequent_indent=" " * 10, break_long_words=False))


if __name__ == "__main__":
    # Where the reader of standard output has gone, end as other commands do.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
