"""The bench's figures as a table and a plot."""

from collections.abc import Sequence
from pathlib import Path

from scripts.labs.benchmarks.harness import Row

KEPT, MISSED, PLAIN = "#2a7f62", "#c1432e", "#8a8f98"


def table(rows: Sequence[Row]) -> str:
    """Markdown: a row a figure, its reference beside it."""
    lines = [
        "| what | figure | beside | figure | ratio | target | |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        verdict = {True: "kept", False: "**missed**", None: ""}[row.met]
        lines.append(
            f"| {row.name} | {_number(row.value)} {row.unit} | {row.reference} | {_number(row.reference_value)} | "
            f"{row.ratio:.2f} | {row.target} | {'; '.join(filter(None, [verdict, row.note]))} |"
        )
    return "\n".join(lines)


def plot(rows: Sequence[Row], path: Path) -> None:
    """The ratios that have a target, each with its bound, and what a request costs as the record grows."""
    import matplotlib as mpl  # of requirements/bench.lock: the bench's --help works without it

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (targets, growth) = pyplot.subplots(1, 2, figsize=(12, 4.5), constrained_layout=True)
    bounded = [row for row in rows if row.target][::-1]
    targets.barh(
        range(len(bounded)), [row.ratio for row in bounded], color=[KEPT if row.met else MISSED for row in bounded]
    )
    for place, row in enumerate(bounded):
        bound = float(row.target.split()[1])
        targets.plot([bound, bound], [place - 0.45, place + 0.45], color="black", linewidth=2)
        targets.text(row.ratio, place, f" {row.ratio:.2f}", va="center", fontsize=8)
    targets.set_yticks(range(len(bounded)), [f"{row.name}\nbeside {row.reference}" for row in bounded], fontsize=7)
    targets.set_title("ratio to the reference; the line is the target", fontsize=9)
    for name in ("decide", "history", "summary", "refusals"):
        points = [row for row in rows if row.name.startswith(f"{name} at ") and row.name.endswith(" decisions")]
        sizes = [int(row.name.split(" ")[2].replace(",", "")) for row in points]
        growth.plot(sizes, [row.ratio for row in points], marker="o", label=name)
    growth.axhline(1, color=PLAIN, linewidth=1)
    growth.set_xscale("log")
    growth.set_ylim(bottom=0)
    growth.set_xlabel("decisions on record", fontsize=9)
    growth.set_title("p50 beside an empty record", fontsize=9)
    growth.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
