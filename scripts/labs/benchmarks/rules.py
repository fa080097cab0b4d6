"""The rules alone: the pure core beside GoRules ZEN on the same table."""

import itertools
import json
import time
from typing import TYPE_CHECKING, Any

from paypilot.core.card_table import CardTable
from paypilot.core.decide import Decision, FailedPayment, decide
from paypilot.core.tables import Tables
from paypilot.tables import published_tables
from scripts.labs.benchmarks.harness import Row, medians

if TYPE_CHECKING:
    import zen

BLOCKS = 7


def measure(rounds: int) -> list[Row]:
    """Decisions per second, and that both decide the same."""
    import zen  # of requirements/bench.lock: the bench's --help works without it

    tables = published_tables()
    theirs = zen.ZenEngine().create_decision(json.dumps(_as_decision_model(tables.card)))
    codes = [*tables.card.rules, "not-in-the-table"]
    for code in codes:
        for attempt, prior_failures in ((1, 0), (2, 0), (3, 0), (1, 3)):
            decision = decide(FailedPayment("in_1", code, attempt, prior_failures), tables)
            assert isinstance(decision, Decision)
            question = {"failure_code": code, "attempt": attempt, "prior_failures": prior_failures}
            answer = theirs.evaluate(question)["result"]
            expected = (decision.action, decision.tone, decision.retry_in_days, decision.churn_risk)
            if expected != (answer["action"], answer["tone"], answer.get("retry_in_days"), answer["churn_risk"]):
                raise RuntimeError(f"ZEN decides {question} otherwise: {answer}")
    pairs = [(_ours(tables, codes, rounds), _theirs(theirs, codes, rounds // 50)) for _ in range(BLOCKS)]
    value, reference_value, ratio = medians(pairs)
    return [Row("rules alone", "decisions/s", value, "GoRules ZEN, same table", reference_value, ratio)]


def _ours(tables: Tables, codes: list[str], rounds: int) -> float:
    started = time.perf_counter()
    for number in range(rounds):
        decide(FailedPayment("in_1", codes[number % len(codes)], 1 + number % 3, 0), tables)
    return rounds / (time.perf_counter() - started)


def _theirs(decision: "zen.ZenDecision", codes: list[str], rounds: int) -> float:
    started = time.perf_counter()
    for number in range(rounds):
        decision.evaluate({"failure_code": codes[number % len(codes)], "attempt": 1 + number % 3, "prior_failures": 0})
    return rounds / (time.perf_counter() - started)


def _as_decision_model(card: CardTable) -> dict[str, Any]:
    """The table and the churn risk as a ZEN decision model: an expression node for the risk, then a decision table."""
    rows = [(f'"{name}"', rule) for name, rule in card.rules.items()] + [("", card.default)]
    table = []
    for number, (code, rule) in enumerate(rows):
        days = rule.retry_in_days
        sooner = "null" if days is None else f'churn_risk == "high" ? {max(1, days - 1)} : {days}'
        table.append(
            {
                "_id": f"row{number}",
                "code": code,
                "action": f'"{rule.action}"',
                "tone": f'"{rule.tone}"',
                "days": sooner,
                "risk": "churn_risk",
            }
        )
    risk = (
        'attempt >= 3 or attempt + prior_failures >= 4 ? "high" : '
        '(attempt >= 2 or attempt + prior_failures >= 2 ? "medium" : "low")'
    )
    outputs = {"action": "action", "tone": "tone", "days": "retry_in_days", "risk": "churn_risk"}
    nodes: list[dict[str, Any]] = [
        {"id": "in", "type": "inputNode", "name": "in"},
        {
            "id": "risk",
            "type": "expressionNode",
            "name": "risk",
            "content": {"expressions": [{"id": "e1", "key": "churn_risk", "value": risk}], "passThrough": True},
        },
        {
            "id": "table",
            "type": "decisionTableNode",
            "name": "table",
            "content": {
                "hitPolicy": "first",
                "inputs": [{"id": "code", "name": "code", "field": "failure_code"}],
                "outputs": [{"id": id_, "name": field, "field": field} for id_, field in outputs.items()],
                "rules": table,
            },
        },
        {"id": "out", "type": "outputNode", "name": "out"},
    ]
    ids = [node["id"] for node in nodes]
    edges = [
        {"id": f"{source}-{target}", "type": "edge", "sourceId": source, "targetId": target}
        for source, target in itertools.pairwise(ids)
    ]
    return {"nodes": nodes, "edges": edges}
