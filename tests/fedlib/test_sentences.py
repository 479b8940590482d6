"""The sentences with which ingredients and methods refuse what does not fit."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.compress.compressors import check_compressors
from fedlib.compress.sketches import Columns
from fedlib.problems import pareto, quadratics
from fedlib.sets.vertices import Corner, OneEntry, RankOne
from tests.helpers.expect import refuses

SKETCHES = (fl.Largest(), fl.Exact(), fl.Masked(), fl.LowRank(1.0), Columns())
COMPRESSORS = (fl.Identity(), fl.TopK(0.5), fl.RandK(0.5), fl.Rounding(4))
FORMATS = (OneEntry(1.0), Corner(-1.0, 1.0), RankOne(1, 3))
BLOCKS = fl.Blocks((fl.Ball(1.0), fl.Box(1.0)), (2, 1))
SETS = (
    fl.Ball(1.0),
    fl.Box(1.0),
    fl.L1Ball(1.0),
    fl.Simplex(),
    fl.NuclearBall(1.0, 2, 2),
    BLOCKS,
)


@pytest.mark.parametrize("sketch", SKETCHES)
def test_a_sketch_takes_matrices(sketch):
    words = "x must be a tensor of floats of shape [m, d], got float32 [3]."
    refuses(f"{type(sketch).__name__}: {words}", sketch, torch.ones(3))


CALLS = [(wire, wire) for wire in (*COMPRESSORS, *FORMATS)]
CALLS += [(x, getattr(x, method)) for x in SETS for method in ("project", "contains", "lmo")]


@pytest.mark.parametrize(("record", "call"), CALLS)
def test_compressors_and_sets_take_vectors(record, call):
    words = "*must be a tensor of floats of shape [d], got float32 [3, 2]."
    refuses(f"{type(record).__name__}: {words}", call, torch.ones(3, 2))


UNBIASED = fl.RandK(0.5)
RATIOS = fl.Preference(ratios=(1.0, 2.0))
REFUSED = [
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
        lambda: check_compressors("M", UNBIASED, fl.Identity(), True, 4),
    ),
    (
        "M: downlink must be contractive (primal EF21), got RandK(fraction=0.5, scaled=True); "
        "take TopK, Rounding or RandK(..., scaled=False).",
        lambda: check_compressors("M", fl.Identity(), UNBIASED, True, 4),
    ),
    (
        "M: preference.ratios must be one for each of the 3 objectives, got (1.0, 2.0).",
        lambda: RATIOS.check("M", 3),
    ),
    (
        "FixedWeights: values must hold a number for each of 3 objectives, got 2.",
        lambda: fl.FixedWeights((1.0, 2.0))(torch.eye(3), torch.ones(3)),
    ),
]


@pytest.mark.parametrize(("sentence", "call"), REFUSED)
def test_compressors_sets_and_weights(sentence, call):
    refuses(sentence, call)


def test_what_fits_is_not_refused():
    check_compressors("M", UNBIASED, fl.TopK(0.5), False, 4)
    check_compressors("M", fl.RandK(0.5, scaled=False), fl.Identity(), True, 4)
    fl.Preference().check("M", 3)
    RATIOS.check("M", 2)


CENTRES = torch.ones(4, 2)
FOUR = quadratics(CENTRES, 0 * CENTRES, level=1.0)
SINGLE = quadratics(CENTRES[:1], 0 * CENTRES[:1], level=1.0)
METHODS = [
    fl.SGM(0.1, 0.0, steps=2),
    fl.PenaltySGM(0.1, 0.0, rho=1.0, steps=2),
    fl.ConEx(0.1, 0.1, 0.0, steps=2),
]
PROBLEMS = [
    ("have one client with all data, got 4; build it with clients=1.", FOUR),
    ("draw batches with replacement, got 'whole_batches'.", replace(SINGLE, whole_batches=True)),
    (
        "have one objective and at least one constraint, got '2 objectives, 0 constraints'.",
        pareto(torch.ones(1, 3, 2, 2)),
    ),
]


@pytest.mark.parametrize(("words", "problem"), PROBLEMS)
@pytest.mark.parametrize("method", METHODS)
def test_a_method_for_data_in_one_place(method, words, problem):
    refuses(f"{type(method).__name__}: problem must {words}", method.init, problem)
