"""The sweeps over local steps and preferences: numbers by hand, rules in both directions."""

import math

import numpy as np
import pytest

from fedlib.core import Trace
from papers.fedcmoo.sweeps import STUDY
from papers.fedcmoo.sweeps.claims import C6
from papers.fedcmoo.sweeps.quantities import derive, final, imbalance
from papers.fedcmoo.sweeps.runs import DEFAULTS
from papers.kit.quantities import Quantities, Query, row, table
from tests.helpers.planted import about


def test_the_final_value_is_that_of_the_last_tenth():
    rounds = np.arange(0, 61, 5)
    loss = np.where(rounds >= 54, 2.0, 9.0)
    trace = Trace({"loss": np.tile(loss, (2, 1))}, {}, rounds, (0, 1), {})
    assert final(trace, "loss").tolist() == [2.0, 2.0]


def test_imbalance_by_hand():
    share = 2.5 / 6.5
    mu = share * math.log(2 * share) + (1 - share) * math.log(2 * (1 - share))
    assert imbalance(np.array([[2.5, 1.0], [4.0, 1.0]]), (1.0, 4.0)) == pytest.approx([mu, 0])


@pytest.mark.parametrize(
    ("with_one", "with_twenty", "verdict"),
    [
        (0.0, 3.0, "reproduced"),
        (-4.0, -1.0, "not reproduced"),  # a growing lead that never is one
        (3.0, 1.0, "not reproduced"),
    ],
)
def test_fsmgda_falls_behind_if_the_lead_grows_and_is_one(with_one, with_twenty, verdict):
    rows = []
    for data in ("multi_mnist", "mnist_fashion"):
        growth = about(with_twenty - with_one)
        rows.append(row("lead", about(with_twenty), data=data, steps=20))
        rows.append(row("lead", growth, data=data, steps=20, minus="fewest"))
    assert C6(Quantities.of([table(rows)], DEFAULTS)).verdict == verdict


def test_a_shortened_sweep_still_gives_numbers():
    p = STUDY.resolve("full", steps=[20], ratios=[2.0])
    shorter = STUDY.specs(p).keys()
    traces = {name: trace for name, trace in STUDY.load().items() if name in shorter}
    assert len(traces) == len(shorter) == 6
    growth = Query.of("lead", data="multi_mnist", steps=20, minus="fewest")
    assert derive(traces, p)[growth].value == 0
