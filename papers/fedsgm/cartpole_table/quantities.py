"""The measures of study `cartpole_table`: those of study `cartpole`."""

from papers.fedsgm.cartpole.quantities import measures
from papers.fedsgm.cartpole_table.runs import defaults
from papers.kit.quantities import Quantities, of_runs
from papers.kit.study import Params, Traces


def derive(traces: Traces, p: Params) -> Quantities:
    """Rewards and costs around three rounds, successes and violations of every run."""
    return Quantities.of([of_runs(traces, measures)], defaults(p))
