"""The quantities of the study of fair classification."""

from collections.abc import Iterator
from functools import partial
from itertools import product

from fedlib.core import Trace
from papers.fedsgm.common import without_splits
from papers.fedsgm.curves import FEASIBLE, halves, oscillation, tuned
from papers.fedsgm.fairness.runs import OPEN_BETAS, OPEN_STEPS, defaults
from papers.fedsgm.multiverse import shares
from papers.kit.numbers import Number, exact, mean, share
from papers.kit.quantities import (
    Defaults,
    Labels,
    Quantities,
    Row,
    of_runs,
    row,
    run_of,
    sweep,
)
from papers.kit.rules import State, all_of, of
from papers.kit.study import Params, Traces

#: Groups of penalties, of each of which the best is measured too.
TUNED: tuple[Labels, ...] = (
    {"training": "federated", "splits": "first"},
    {"training": "central", "splits": "first"},
    {"training": "federated", "splits": "fresh"},
)
#: Loss and gap on the training rows, and on the test rows.
CURVES = (("f", "g"), ("test_loss", "test_gap"))


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: of every run, of the tuned penalties, and null data."""
    tolerance = p["tolerance"]
    usual = defaults(p)
    judged = without_splits(traces, "open")
    hard = run_of(traces, usual, method="hard")
    tables = [
        of_runs(judged, partial(measures, tolerance)),
        tuned_penalties(traces, tolerance, usual),
        null_data(run_of(traces, usual, method="hard", splits="fresh")),
        [row("majority", exact(hard.config["problem"]["majority"]))],
    ]
    if p["many"]:
        settings = better_trade_off(traces, tolerance, usual)
        tables.append(shares(settings, "C22.share", "C22.control"))
    return Quantities.of(tables, usual)


def measures(tolerance: float, trace: Trace) -> dict[str, Number]:
    """Late means, infeasible seeds, speed and oscillation of a run."""
    numbers = {curve: mean(trace.late(curve)) for curve in ("f", "f_clients", "g", "test_accuracy")}
    numbers["infeasible"] = share(trace.late("g") > FEASIBLE * tolerance, "of seeds")
    numbers["mean_f"] = mean(trace.of_rounds("f").mean(1))
    numbers["oscillation"] = mean(oscillation(trace), "1e-3")
    return numbers


def tuned_penalties(traces: Traces, tolerance: float, usual: Defaults) -> Iterator[Row]:
    """The best penalty of each group, and its measures again."""
    for group in TUNED:
        runs = sweep(traces, usual, "rho", method="penalty", **group)
        rho = tuned(runs, tolerance)
        numbers = {**measures(tolerance, runs[rho]), "rho": exact(rho)}
        for name, number in numbers.items():
            yield row(name, number, method="penalty", setting="tuned", **group)


def null_data(trace: Trace) -> Iterator[Row]:
    """Measures of a run on two disjoint halves of the seeds: between them there is no effect."""
    curves = {
        "f": trace.late("f"),
        "g": trace.late("g"),
        "mean_f": trace.of_rounds("f").mean(1),
        "oscillation": oscillation(trace),
    }
    for name, values in curves.items():
        for number, half in enumerate(halves(values)):
            yield row(name, mean(half), half=number)


def better_trade_off(
    traces: Traces, tolerance: float, usual: Defaults
) -> Iterator[tuple[State, State]]:
    """In every open setting, whether soft switching has the smaller gap and no larger loss.

    The control is hard switching in its place.
    """
    for step, beta, curves in product(OPEN_STEPS, OPEN_BETAS, CURVES):
        start = {**step, "splits": "open"}
        hard = run_of(traces, usual, method="hard", **start)
        soft = run_of(traces, usual, method="soft", beta=beta, **start)
        penalties = sweep(traces, usual, "rho", method="penalty", **start)
        rivals = [hard, penalties[tuned(penalties, tolerance)]]
        yield is_better(soft, rivals, *curves), is_better(hard, rivals, *curves)


def is_better(
    trace: Trace,
    rivals: list[Trace],
    loss: str,
    gap: str,
) -> State:
    """Whether a run has a smaller late gap and no larger late loss than each rival."""
    numbers = {"loss": mean(trace.late(loss)), "gap": mean(trace.late(gap))}
    conditions = []
    for number, rival in enumerate(rivals):
        numbers[f"loss{number}"] = mean(rival.late(loss))
        numbers[f"gap{number}"] = mean(rival.late(gap))
        conditions.append(of("gap") < of(f"gap{number}"))
        conditions.append(of("loss") <= of(f"loss{number}"))
    return all_of(*conditions).holds(numbers)
