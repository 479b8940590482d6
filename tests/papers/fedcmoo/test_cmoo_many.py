"""Many objectives: the problems and methods of the study, its numbers, and the rule of C2."""

import numpy as np
import pytest
import torch

from fedlib.core import Trace
from papers.fedcmoo import networks
from papers.fedcmoo.common import final
from papers.fedcmoo.many import STUDY
from papers.fedcmoo.many.quantities import LAST, gap_at_equal_upload, megabytes
from papers.fedcmoo.many.runs import DEFAULTS, RATES, SETS, many_problem, own_pictures
from papers.fedcmoo.problems.attributes import GROUPS
from papers.fedcmoo.standin import what
from papers.kit.quantities import Quantities, Query, row, table
from tests.helpers.planted import about

SMALL = {"clients": 3, "alpha": 0.3, "pictures": 90, "test_pictures": 40}
(C2,) = STUDY.claims


def trace(accuracy, bits=8e6):
    """A run of one seed: mean accuracy by evaluation."""
    config = {"algorithm": {"participants": 2}, "bits": {"bits_up": bits}}
    x = np.array([accuracy], float)
    return Trace({"accuracy": x}, {}, np.arange(x.shape[1]), (0,), config)


def numbers():
    """Numbers for which the claim holds."""
    rows = [
        row("gap", about(8.0), tasks="attributes"),
        row("gap", about(7.0), tasks="attributes", minus="halves"),
    ]
    return Quantities.of([table(rows)], DEFAULTS)


def test_a_final_value_averages_the_last_fifth_with_the_final_model():
    assert final(trace(range(10)), "accuracy", LAST).tolist() == [8.5]
    assert final(trace([1.0, 5.0]), "accuracy", LAST).tolist() == [5.0]
    assert megabytes(trace([0.5])) == pytest.approx(0.5)  # 8 million bits of two clients


def test_gaps_stop_fsmgda_where_it_has_sent_as_much():
    curve = np.linspace(0.5, 0.9, 11)
    ours = trace(curve, bits=1e6)
    theirs = trace(curve - 0.1, bits=4e6)
    at_stop = np.interp(2.5, range(11), curve - 0.1)
    assert gap_at_equal_upload(ours, theirs) == pytest.approx(100 * (0.9 - at_stop))
    cheap = trace(curve - 0.1, bits=1e5)
    assert gap_at_equal_upload(ours, cheap) == pytest.approx(10)  # not beyond its last round


def test_a_stand_in_for_celeba_is_not_judged():
    runs = {name: STUDY.payload(name)["config"] for name in C2.runs}
    long = {n: {**c, "rounds": 200, "seeds": [0, 1, 2]} for n, c in runs.items()}
    for c in long.values():
        c["algorithm"] = {**c["algorithm"], "participants": 10}
    outcome = C2.verdicts(numbers(), long, long)[C2.reading]
    assert outcome.verdict == "not judged"
    assert "problem.data 'mnist_fashion', the paper 'celeba'" in outcome.reason
    faces = {n: {**c, "problem": {**c["problem"], "data": "celeba"}} for n, c in long.items()}
    assert C2.verdicts(numbers(), faces, faces)[C2.reading].verdict == "reproduced"
    short = {n: {**c, "rounds": 66} for n, c in faces.items()}
    assert "66 of the paper's 200 rounds" in C2.verdicts(numbers(), short, short)[C2.reading].reason


def test_the_methods_of_a_problem_have_the_same_step_sizes_and_shared_part():
    specs = STUDY.specs(STUDY.resolve("full"))
    encoder = networks.encoder_size(networks.pair_lenet(torch.Generator(), decoders=40, hidden=0))
    for tasks, rates in RATES.items():
        for name in ("fsmgda", "fedcmoo"):
            algorithm = specs[f"{tasks}_{name}"].algorithm
            assert (algorithm.server_lr, algorithm.lr) == rates
            assert algorithm.shared == encoder == 28515
    assert specs["halves_fsmgda"].algorithm.least is not None
    assert specs["groups_fsmgda"].algorithm.least is None


def test_the_three_problems_ask_the_same_of_the_same_pictures():
    problems = {t: many_problem(0, source="stand-in", tasks=t, **SMALL) for t in SETS}
    assert {t: p.num_objectives for t, p in problems.items()} == SETS
    halved, *further = problems.values()
    for problem in further:
        assert torch.equal(halved.data[0], problem.data[0])
        assert halved.sizes == problem.sizes
    a = problems["attributes"].data[1]
    halves = problems["halves"].data[1]
    groups = problems["groups"].data[1]
    assert torch.equal(halves, torch.stack([a[:, :20], a[:, 20:]], 1))
    assert torch.equal(groups[:, 3], a[:, list(GROUPS[3])])
    share = own_pictures("stand-in", "test", 40).a.double().mean(0)
    expected = torch.maximum(share, 1 - share).mean().item()
    assert halved.config["majority"] == pytest.approx(expected, abs=1e-6)


def test_the_numbers_of_short_runs_and_of_other_parameters():
    changes = {"rounds": 1, "seeds": [0, 1], "local_steps": 1}
    traces = STUDY.open("quick", **changes).run()
    quantities = STUDY.numbers(traces, "quick", **changes)
    assert what(traces) == "pairs of scikit-learn's digits"
    gaps = {tasks: quantities[Query.of("gap", tasks=tasks)] for tasks in SETS}
    assert len(gaps["halves"].per_seed) == 2
    growth = quantities[Query.of("gap", tasks="attributes", minus="halves")]
    assert growth.value == pytest.approx(gaps["attributes"].value - gaps["halves"].value)
    for tasks, count in SETS.items():
        ratio = quantities[Query.of("upload_ratio", tasks=tasks)]
        assert ratio.value == pytest.approx(count / 2, rel=0.06)
