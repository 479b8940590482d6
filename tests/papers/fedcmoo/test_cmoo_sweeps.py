"""The sweeps over local steps and preferences: numbers by hand, rules in both directions."""

import pytest

from papers.fedcmoo.sweeps.claims import C6
from papers.fedcmoo.sweeps.runs import DEFAULTS
from papers.kit.quantities import Quantities, row
from tests.helpers.planted import about


@pytest.mark.parametrize(
    ("with_one", "with_twenty", "accuracy", "verdict"),
    [
        (0.0, 3.0, 0.8, "reproduced: 4 hold"),
        (-4.0, -1.0, 0.8, "mixed: 2 hold, 2 fail"),  # a growing lead that never is one
        (3.0, 1.0, 0.8, "mixed: 2 hold, 2 fail"),
        (3.0, 1.0, 0.5, "mixed: 2 hold, 2 open"),  # one step a round has trained neither method
    ],
)
def test_fsmgda_falls_behind_if_the_lead_grows_and_is_one(with_one, with_twenty, accuracy, verdict):
    rows = []
    for data in ("multi_mnist", "mnist_fashion"):
        growth = about(with_twenty - with_one)
        rows.append(row("lead", about(with_twenty), data=data, steps=20))
        rows.append(row("lead", growth, data=data, steps=20, minus="fewest"))
        for method in ("fsmgda", "fedcmoo"):
            run = {"data": data, "method": method, "steps": 1}
            rows.append(row("accuracy", about(accuracy, 0.01), **run))
    assert C6(Quantities.of([rows], DEFAULTS)).label == verdict
