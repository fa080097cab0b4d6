"""Say why a recorded decision was taken, and decide it again by the table that it names.

Give it a decision, or a page of GET /decisions/{invoice_id}, as JSON: a file, or standard input.
It exits 1 if the table decides otherwise than the record says, and if no published table has that version.
"""

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.core.rails import Registry
from paypilot.rails import load_registry
from paypilot.rules import current_ruleset, published_rulesets

DECIDED = ("rule", "action", "tone", "retry_in_days", "churn_risk", "escalated", "rules_version", "rail")


class UnknownTable(LookupError):
    """No published table has the version that the decision names."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="standard input without one")
    file = parser.parse_args().file
    try:
        document = json.loads(file.read_text() if file else sys.stdin.read())
        decisions = document.get("decisions", [document])
        differing = [explain(decision) for decision in decisions]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"explain: this is neither a decision nor a page of them: {type(error).__name__} {error}")
    except UnknownTable as error:
        sys.exit(f"explain: {error}")
    sys.exit(1 if any(differing) else 0)


def explain(recorded: dict[str, Any]) -> list[str]:
    """Print the reasons of one decision and return the names of the fields that its table decides otherwise."""
    payment = FailedPayment(*(recorded[name] for name in FailedPayment._fields))
    decision, reasons = decide_again(payment, recorded["rules_version"])
    differing = [name for name in DECIDED if recorded.get(name) != getattr(decision, name)]
    print(f"decision {recorded['decision_id']} of invoice {payment.invoice_id}, {recorded['decided_at']}")
    tell("asked", f"{payment.failure_code}, attempt {payment.attempt}, {payment.prior_failures} prior failures")
    tell("table", recorded["rules_version"])
    tell("rule", f"{decision.rule}, {'matched' if decision.matched else 'the code fell through'}")
    for name, text in reasons:
        tell(name, text)
    tell("risk", f"{decision.churn_risk}{', so a retry comes one day sooner' if decision.escalated else ''}")
    days = decision.retry_in_days
    tell("answer", f"{decision.action}, {decision.tone}, {'never retried' if days is None else f'retried in {days} d'}")
    tell("replay", f"DIFFERS in {', '.join(differing)}" if differing else "agrees with the record")
    print()
    return differing


def decide_again(payment: FailedPayment, version: str) -> tuple[Decision, list[tuple[str, str]]]:
    """The decision by the table of `version`, and that table's why and source for it. Raises `UnknownTable`."""
    rulesets, rails = published_rulesets(), load_registry().versions
    if version in rulesets:
        decision = decide(payment, rulesets[version], Registry([]))
        rule = rulesets[version].rules.get(decision.rule, rulesets[version].default)
        return decision, [("why", rule.why), ("source", rule.source)]
    if version in rails:
        rail = rails[version]
        decision = decide(payment, current_ruleset(), Registry([rail.document]))
        answer = rail.lookup(payment.failure_code.partition(":")[2])
        row = next(row for row in rail.decisions() if row.row == answer.row)
        sources = "; ".join(f"{source.title}, {source.address}" for source in answer.sources or row.sources)
        return decision, [("why", row.why), ("says", answer.reason), ("source", sources)]
    raise UnknownTable("no published table has the version that this decision names")


def tell(name: str, text: str) -> None:
    """One labelled paragraph."""
    print(textwrap.fill(text, 100, initial_indent=f"  {name:<8}", subsequent_indent=" " * 10, break_long_words=False))


if __name__ == "__main__":
    main()
