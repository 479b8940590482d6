"""Many objectives: the problems and methods of the study, its numbers, and the rule of C2."""

from itertools import product

import numpy as np
import pytest
import torch
from composite import celeba_files
from planted import about

from fedlib.core import Trace
from papers.fedcmoo import many as cmoo_many
from papers.fedcmoo import networks
from papers.fedcmoo.data import celeba
from papers.fedcmoo.data.attributes import GROUPS
from papers.fedcmoo.many import STUDY, many_problem, own_pictures, two_digits
from papers.fedcmoo.many.numbers import (
    SETS,
    at,
    deviations_at_equal_loss,
    final,
    gaps,
    megabytes,
    per_task,
    spread,
    steps,
)
from papers.fedcmoo.standin import what
from papers.kit.numbers import mean

SMALL = {"clients": 3, "alpha": 0.3, "pictures": 90, "test_pictures": 40}
(C2,) = STUDY.claims


def trace(accuracy, losses, *, method="FedCMOO", tasks=None, bits=8e6, local_steps=10):
    """A run of one seed: mean accuracy by evaluation, and a constant loss of every task."""
    count = tasks or len(losses)
    accuracy = np.array([accuracy], float)
    each = {f"loss_{k + 1}": np.full_like(accuracy, x) for k, x in enumerate(losses)}
    each |= {f"accuracy_{k + 1}": accuracy for k in range(len(losses))}
    mean_loss = np.full_like(accuracy, np.mean(losses))
    problem = {"objectives": count, "data": "mnist_fashion", "majority": 0.6, "pictures": 100}
    own = {"type": method, "participants": 2, "local_steps": local_steps}
    config = {"algorithm": own, "problem": problem, "bits": {"bits_up": bits}}
    rounds = np.arange(accuracy.shape[1])
    return Trace({"accuracy": accuracy, "loss": mean_loss, **each}, {}, rounds, (0,), config)


def numbers(**changes):
    """Numbers for which both claims hold, with changes."""
    found = {f"{s}.gap": mean([x]) for s, x in zip(SETS, (1.0, 3.0, 8.0), strict=True)}
    found |= {f"{t}_vs_halves.gap": mean([x]) for t, x in (("groups", 2.0), ("attributes", 7.0))}
    for tasks in ("groups", "attributes"):
        for name, k in product(("fedcmoo", "fsmgda"), ("deviation", "alike")):
            found[f"{tasks}_pref_vs_{name}.{k}"] = mean([0.5])
    return {k: about(n.value) for k, n in found.items()} | {k: about(v) for k, v in changes.items()}


def test_a_final_value_averages_the_last_fifth_with_the_final_model():
    one = trace(range(10), [1.0, 1.0])
    assert final(one, "accuracy").tolist() == [8.5]
    assert final(trace([1.0, 5.0], [1.0]), "accuracy").tolist() == [5.0]
    assert at(one, "accuracy", 2.25).tolist() == [2.25]


def test_the_losses_of_tasks_stay_in_order_and_their_spread_is_that_of_numpy():
    losses = [0.1 * k for k in range(1, 13)]  # loss_10 comes after loss_9
    one = per_task(trace([0.5] * 3, losses), "loss")
    np.testing.assert_allclose(one, [losses])
    found = spread(one)
    assert found["deviation"][0] == pytest.approx(np.std(losses))
    assert found["range"][0] == pytest.approx(1.1)
    assert found["relative"][0] == pytest.approx(np.std(losses) / np.mean(losses))


def test_what_a_round_costs():
    ours = trace([0.5] * 3, [1.0], tasks=40)
    theirs = trace([0.5] * 3, [1.0], tasks=40, method="FSMGDA")
    assert (steps(ours), steps(theirs)) == (49, 400)
    assert megabytes(ours) == pytest.approx(0.5)  # 8 million bits of two clients


def test_gaps_stop_fsmgda_where_it_has_spent_as_much():
    curve = np.linspace(0.5, 0.9, 11)
    ours = trace(curve, [1.0], tasks=5, bits=1e6)
    theirs = trace(curve - 0.1, [1.0], tasks=5, bits=4e6, method="FSMGDA")
    found = {k: n.value for k, n in gaps(ours, theirs).items()}
    assert found["gap"] == pytest.approx(10)
    assert found["gap_upload"] == pytest.approx(
        100 * (0.9 - np.interp(2.5, range(11), curve - 0.1))
    )
    where = 10 * 14 / 50
    assert found["gap_gradients"] == pytest.approx(
        100 * (0.9 - np.interp(where, range(11), curve - 0.1))
    )
    assert found["upload_ratio"] == pytest.approx(4)
    cheap = trace(curve - 0.1, [1.0], tasks=5, bits=1e5, method="FSMGDA")
    assert gaps(ours, cheap)["gap_upload"].value == pytest.approx(10)  # not beyond its last round


def test_spreads_are_compared_where_the_mean_losses_are_alike():
    losses = {1: [2.0, 1.5, 1.0, 0.5], 2: [2.0, 1.1, 0.8, 0.3]}
    slow = {1: [2.0, 1.9, 1.6, 1.2], 2: [2.0, 1.7, 1.4, 1.0]}

    def run(of):
        each = {f"loss_{k}": np.array([x], float) for k, x in of.items()}
        whole = {"loss": sum(each.values()) / 2, **each}
        return Trace(whole, {}, np.arange(len(of[1])), (0,), {})

    ours, theirs = deviations_at_equal_loss(run(losses), run(slow))
    assert theirs == pytest.approx([0.1])  # its last model, mean loss 1.1
    assert ours == pytest.approx([0.15])  # half way from its second model to its third
    backwards = deviations_at_equal_loss(run(slow), run(losses))
    assert backwards[0] == pytest.approx(theirs)
    still = run({1: [2.0] * 4, 2: [2.0] * 4})
    nothing = deviations_at_equal_loss(still, run(losses))
    assert [x.tolist() for x in nothing] == [[0.0], [0.0]]  # compared where neither has learnt
    lost = deviations_at_equal_loss(run({1: [2.0, np.nan], 2: [2.0, np.nan]}), still)
    assert np.isnan(lost).all()


def test_a_stand_in_for_celeba_is_not_judged():
    runs = {name: STUDY.payload(name)["config"] for name in C2.runs}
    long = {n: {**c, "rounds": 200, "seeds": [0, 1, 2]} for n, c in runs.items()}
    for c in long.values():
        c["algorithm"] = {**c["algorithm"], "participants": 10}
    outcome = C2.verdict(numbers(), long, long)
    assert outcome.verdict == "not judged"
    assert "problem.data 'mnist_fashion', the paper 'celeba'" in outcome.reason
    faces = {n: {**c, "problem": {**c["problem"], "data": "celeba"}} for n, c in long.items()}
    assert C2.verdict(numbers(), faces, faces).verdict == "reproduced"
    short = {n: {**c, "rounds": 66} for n, c in faces.items()}
    assert "66 of the paper's 200 rounds" in C2.verdict(numbers(), short, short).reason


def test_the_methods_of_a_problem_have_the_same_step_sizes_and_shared_part():
    found = STUDY.specs(STUDY.resolve("full"))
    encoder = networks.encoder_size(networks.pair_lenet(torch.Generator(), decoders=40, hidden=0))
    for tasks, rates in cmoo_many.RATES.items():
        for name in ("fsmgda", "fedcmoo", "pref"):
            own = found[f"{tasks}_{name}"].algorithm
            assert (own.server_lr, own.lr) == rates
            assert own.shared == encoder == 28515
    assert found["halves_fsmgda"].algorithm.least is not None
    assert found["groups_fsmgda"].algorithm.least is None
    assert found["attributes_pref"].algorithm.least(torch.eye(40)[0])[1] == pytest.approx(1 / 200)


def test_the_three_problems_ask_the_same_of_the_same_pictures():
    made = {t: many_problem(0, source="stand-in", tasks=t, **SMALL) for t in SETS}
    assert {t: p.num_objectives for t, p in made.items()} == SETS
    first, *others = made.values()
    for other in others:
        assert torch.equal(first.data[0], other.data[0])
        assert first.sizes == other.sizes
    a = made["attributes"].data[1]
    halves, groups = made["halves"].data[1], made["groups"].data[1]
    assert torch.equal(halves, torch.stack([a[:, :20], a[:, 20:]], 1))
    assert torch.equal(groups[:, 3], a[:, list(GROUPS[3])])
    share = own_pictures("stand-in", "test", 40).a.double().mean(0)
    expected = torch.maximum(share, 1 - share).mean().item()
    assert first.config["majority"] == pytest.approx(expected, abs=1e-6)


def test_pairs_of_small_digits():
    train, test = two_digits("train", 0), two_digits("test", 0)
    assert (len(train.y), len(test.y)) == (1200, 597)
    assert train.X.shape == (1200, 1, 28, 28)
    assert train.X.max() == 240
    assert torch.equal(two_digits("train", 7).X, train.X[:7])
    corner = train.X[:, 0, :12, :12]  # of the first digit alone, every pixel four times
    assert torch.equal(corner[:, ::2, ::2], corner[:, 1::2, 1::2])
    assert (train.y[:, 0].bincount() == train.y[:, 1].bincount()).all()
    assert (train.y[:, 0] != train.y[:, 1]).float().mean() > 0.8
    same = (train.X[:, 0, 16:, 16:] != 0).any(-1).any(-1)
    assert same.float().mean() > 0.95  # the second digit is there


def test_the_numbers_of_short_runs_and_of_other_parameters():
    changes = {"rounds": 1, "seeds": [0, 1], "local_steps": 1}
    traces = STUDY.compute("quick", progress=False, **changes)
    found = STUDY.numbers(traces, "quick", **changes)
    assert what(traces) == "pairs of scikit-learn's digits"
    assert len(found["halves.gap"].per_seed) == 2
    for tasks, count in SETS.items():
        assert found[f"{tasks}.upload_ratio"].value == pytest.approx(count / 2, rel=0.06)
        assert found[f"{tasks}.gradient_ratio"].value == pytest.approx(1)  # one local step
        losses = per_task(traces[f"{tasks}_pref"], "loss")
        assert losses.shape == (2, count)
        assert found[f"{tasks}_pref.loss"].value == pytest.approx(losses.mean(), rel=1e-5)
        mu = traces[f"{tasks}_pref"].info["mu"]
        assert found[f"{tasks}_pref.balancing"].value == pytest.approx((mu > 0.01).mean())
    table = cmoo_many.attribute_table(STUDY.resolve("quick"), traces)
    assert len(table) == 40
    assert table["task of five"].value_counts().tolist() == [8] * 5
    assert table.loc[1, "attribute"] == "even"
    loss = per_task(traces["attributes_fedcmoo"], "loss").mean(0)
    assert float(table.loc[40, "loss, FedCMOO"]) == pytest.approx(loss[39], abs=6e-4)


@pytest.fixture
def faces(tmp_path, monkeypatch):
    """Generated files of CelebA's format, of eight training and four test pictures."""
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    own_pictures.cache_clear()
    signs = np.where(np.random.default_rng(0).random((12, 40)) < 0.5, 1, -1)
    names, greys = " ".join(celeba.CELEBA_5), range(0, 240, 20)
    celeba_files(tmp_path / "celeba", names, signs, [0] * 8 + [2] * 4, greys)
    yield signs > 0
    own_pictures.cache_clear()
    many_problem.cache_clear()


def test_the_study_takes_a_copy_of_celeba(faces):
    p = STUDY.resolve("quick", source=1, clients=2, pictures=8, test_pictures=4)
    spec = STUDY.specs(p)["groups_fedcmoo"]
    task = spec.problem(0)
    assert task.config["data"] == "celeba"
    assert task.num_objectives == 5
    assert task.data[0].shape == (8, 3, 32, 32)
    groups = torch.from_numpy(faces[:8].reshape(8, 5, 8))  # names are written group by group
    assert torch.equal(task.data[1].bool(), groups)
    assert task.heldout[1].shape == (4, 5, 8)
    assert spec.algorithm.shared == 11_168_832 == task.config["shared"]
    halves = STUDY.specs(p)["halves_fedcmoo"].problem(0)
    assert torch.equal(halves.data[1].flatten(1).bool(), torch.from_numpy(faces[:8]))


@pytest.mark.parametrize("source", [3, -1])
def test_a_source_that_is_not_there_is_refused(source):
    with pytest.raises(ValueError, match=f"cmoo_many: source must be .*, got {source}"):
        STUDY.specs(STUDY.resolve("quick", source=source))
