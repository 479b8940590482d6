"""The sentences with which ingredients and methods refuse what does not fit, to the letter."""

import re
from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.compress.compressors import check_compressors
from fedlib.compress.sketches import Columns
from fedlib.problems import pareto, quadratics
from fedlib.sets.vertices import Corner, OneEntry, RankOne

MATRIX = "x must be a tensor of floats of shape [m, d], got float32 [3]."
VECTOR = "x must be a tensor of floats of shape [d], got float32 [3, 2]."
SKETCHES = (fl.Largest(), fl.Exact(), fl.Masked(), fl.LowRank(1.0), Columns())
COMPRESSORS = (fl.Identity(), fl.TopK(0.5), fl.RandK(0.5), fl.Rounding(4))
FORMATS = (OneEntry(1.0), Corner(-1.0, 1.0), RankOne(1, 3))
BLOCKS = fl.Blocks((fl.Ball(1.0), fl.Box(1.0)), (2, 1))


def says(sentence, call):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        call()


@pytest.mark.parametrize("sketch", SKETCHES, ids=lambda x: type(x).__name__)
def test_a_sketch_takes_matrices(sketch):
    says(f"{type(sketch).__name__}: {MATRIX}", lambda: sketch(torch.ones(3)))


@pytest.mark.parametrize("wire", [*COMPRESSORS, *FORMATS], ids=lambda x: type(x).__name__)
def test_a_compressor_takes_vectors(wire):
    says(f"{type(wire).__name__}: {VECTOR}", lambda: wire(torch.ones(3, 2)))


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        (
            "Blocks: x must be a vector of floats of 3 entries, got float32 [4].",
            lambda: BLOCKS.project(torch.ones(4)),
        ),
        (
            "Blocks: sets must have one set for each of (2, 1), got (Ball(radius=1.0),).",
            lambda: fl.Blocks((fl.Ball(1.0),), (2, 1)),
        ),
        (
            "PerClient: of must hold all of 0..1 (the sets), got (0, 0, 2).",
            lambda: fl.PerClient((fl.Ball(1.0), fl.Box(1.0)), of=(0, 0, 2)),
        ),
        (
            "M: uplink must be contractive under error feedback, got RandK(fraction=0.5, "
            "scaled=True); pass error_feedback=False or scaled=False.",
            lambda: check_compressors("M", fl.RandK(0.5), fl.Identity(), True, 4),
        ),
        (
            "M: downlink must be contractive (primal EF21), got RandK(fraction=0.5, scaled=True); "
            "take TopK, Rounding or RandK(..., scaled=False).",
            lambda: check_compressors("M", fl.Identity(), fl.RandK(0.5), True, 4),
        ),
        (
            "M: preference.ratios must be one for each of the 3 objectives, got (1.0, 2.0).",
            lambda: fl.Preference(ratios=(1.0, 2.0)).check("M", 3),
        ),
        (
            "FixedWeights: values must hold a number for each of 3 objectives, got 2.",
            lambda: fl.FixedWeights((1.0, 2.0))(torch.eye(3), torch.ones(3)),
        ),
    ],
)
def test_compressors_sets_and_weights(sentence, call):
    says(sentence, call)


def test_what_fits_is_not_refused():
    check_compressors("M", fl.RandK(0.5), fl.TopK(0.5), False, 4)
    check_compressors("M", fl.RandK(0.5, scaled=False), fl.Identity(), True, 4)
    fl.Preference().check("M", 3)
    fl.Preference(ratios=(1.0, 2.0)).check("M", 2)


CENTRES = torch.ones(4, 2, dtype=torch.float64)
FOUR = quadratics(CENTRES, 0 * CENTRES, level=1.0)
ONE = quadratics(CENTRES[:1], 0 * CENTRES[:1], level=1.0)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("have one client with all data, got 4; build it with clients=1.", FOUR),
        ("draw batches with replacement, got 'whole_batches'.", replace(ONE, whole_batches=True)),
        (
            "have one objective and at least one constraint, got '2 objectives, 0 constraints'.",
            pareto(torch.ones(1, 3, 2, 2)),
        ),
    ],
)
@pytest.mark.parametrize("method", [fl.SGM, fl.PenaltySGM, fl.ConEx])
def test_a_method_for_data_in_one_place(method, rule, problem):
    further = {fl.SGM: {}, fl.PenaltySGM: {"rho": 1.0}, fl.ConEx: {"dual_lr": 0.1}}[method]
    says(
        f"{method.__name__}: problem must {rule}",
        lambda: method(
            lr=0.1,
            tolerance=0.0,
            steps=2,
            **further,
        ).init(problem),
    )


SETS = (
    *(fl.Ball(1.0), fl.Box(1.0), fl.L1Ball(1.0), fl.Simplex()),
    *(fl.NuclearBall(1.0, 2, 2), fl.Blocks((fl.Ball(1.0),), (4,))),
)


@pytest.mark.parametrize("method", ["project", "contains", "lmo"])
@pytest.mark.parametrize("convex_set", SETS, ids=lambda x: type(x).__name__)
def test_a_set_takes_vectors(convex_set, method):
    of_a_set = method == "lmo" and not isinstance(convex_set, fl.Blocks)
    argument = "direction" if of_a_set else "x"
    rule = f"{argument} must be a tensor of floats of shape [d], got float32 [2, 2]."
    says(
        f"{type(convex_set).__name__}: {rule}",
        lambda: getattr(convex_set, method)(torch.ones(2, 2)),
    )
