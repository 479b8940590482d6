"""The measures of study `cartpole_table`: those of study `cartpole`."""

from __future__ import annotations

from papers.fedsgm.cartpole.numbers import measures
from papers.kit.numbers import Number
from papers.kit.study import Params, Traces


def derive(traces: Traces, p: Params) -> dict[str, Number]:  # noqa: ARG001 - as every study
    """Rewards and costs around three rounds, successes and violations of every run."""
    return {key: x for name, trace in traces.items() for key, x in measures(name, trace).items()}
