"""What became of a client's invoices, in numbers."""

from contract.caller import Caller, Values, new_invoice

ENOUGH = 30


def of_rule(summary: Values, rule: str) -> Values:
    found = [counts for counts in summary.by_rule if counts.rule == rule]
    return found[0] if found else Values(rule=rule, invoices=0, paid=0, not_paid=0, unknown=0)


def test_an_invoice_is_counted_once_by_the_rule_of_its_newest_decision(client: Caller) -> None:
    invoice = new_invoice()
    before = client.summary()
    for rule in ("card_expired", "insufficient_funds", "insufficient_funds", "not_listed"):
        client.decide(invoice, failure_code=rule)
    after = client.summary()
    assert (after.invoices, after.unknown) == (before.invoices + 1, before.unknown + 1)
    assert of_rule(after, "default").unknown == of_rule(before, "default").unknown + 1
    for rule in ("card_expired", "insufficient_funds"):
        assert of_rule(after, rule) == of_rule(before, rule)
    client.decide(invoice, failure_code="card_expired")
    moved = client.summary()
    assert of_rule(moved, "default") == of_rule(before, "default")
    assert of_rule(moved, "card_expired").invoices == of_rule(before, "card_expired").invoices + 1


def test_an_invoice_is_counted_by_its_newest_report(client: Caller) -> None:
    invoice = new_invoice()
    client.decide(invoice, failure_code="generic_decline")
    before = client.summary()
    steps = {"paid": (1, 0, -1), "not_paid": (0, 1, -1)}
    for outcome in ("paid", "paid", "not_paid", "paid"):
        client.report(invoice, outcome)
        now = client.summary()
        for was, shown in ((before, now), (of_rule(before, "generic_decline"), of_rule(now, "generic_decline"))):
            changed = (shown.paid - was.paid, shown.not_paid - was.not_paid, shown.unknown - was.unknown)
            assert changed == steps[outcome]


def test_rules_are_listed_by_name_and_none_without_an_invoice(client: Caller) -> None:
    for rule in ("retries_exhausted", "card_expired", "insufficient_funds"):
        client.decide(new_invoice(), failure_code=rule)
    rules = client.summary().by_rule
    assert [counts.rule for counts in rules] == sorted({counts.rule for counts in rules})
    assert all(counts.invoices > 0 for counts in rules)


def test_the_rate_is_withheld_until_thirty_invoices_are_reported(other: Caller) -> None:
    # `other` reports little elsewhere in this suite, so that a fresh slice is seen on both sides of thirty.
    for number in range(ENOUGH + 1):
        summary = other.summary()
        reported = summary.paid + summary.not_paid
        if reported >= ENOUGH:
            break
        assert summary.recovery_rate is None
        assert summary.recovery_rate_withheld == "fewer than 30 invoices have a reported outcome"
        invoice = new_invoice()
        other.decide(invoice)
        other.report(invoice, "not_paid" if number % 3 == 0 else "paid")
    assert summary.recovery_rate == summary.paid / (summary.paid + summary.not_paid)
    assert summary.recovery_rate_withheld is None


def test_many_reports_of_one_invoice_are_one_reported_invoice(client: Caller) -> None:
    invoice = new_invoice()
    client.decide(invoice)
    before = client.summary()
    for _ in range(5):
        client.report(invoice, "paid")
    after = client.summary()
    assert (after.paid, after.invoices) == (before.paid + 1, before.invoices)
