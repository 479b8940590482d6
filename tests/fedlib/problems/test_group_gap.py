"""Gaps between groups over the rows of all clients: values, gradients, bits, and refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

import fedlib as fl
from fedlib import problems
from fedlib.problems import GroupGap
from tests.helpers.expect import close, refuses
from tests.helpers.rounds import walk
from tests.helpers.weekly import further_weekly

SIZES = (40, 25, 70, 65)
FEDSGM = fl.FedSGM(
    lr=0.5,
    local_steps=3,
    participants=4,
    tolerance=0.05,
)


def loss(rows):
    target = rows.target.reshape(-1).to(rows.weight.dtype)
    values = binary_cross_entropy_with_logits(rows.output.squeeze(-1), target, reduction="none")
    return rows.mean(values)


def people(groups=2, apart=True, seed=0):
    """Inputs, targets and groups of 200 people; with `apart`, sorted by their group."""
    rng = torch.Generator().manual_seed(seed)
    group = torch.arange(200) % groups
    if apart:
        group = group.sort().values
    x = torch.randn(200, 3, generator=rng, dtype=torch.float64)
    x[:, 0] += 1.5 * group
    noise = 0.3 * torch.randn(200, generator=rng, dtype=torch.float64)
    y = (x[:, 0] + noise > 0.8).double()
    return x, y, group


def layer(outputs=1):
    module = nn.Linear(3, outputs).double()
    with torch.no_grad():
        module.weight.copy_(torch.arange(3.0 * outputs).view(outputs, 3) / 4)
        module.bias.fill_(0.1)
    return module


def divided(*tensors):
    return [tuple(client) for client in zip(*(x.split(SIZES) for x in tensors), strict=True)]


def make(clients, constraint, **changes):
    options = {
        "module": layer(),
        "objective": loss,
        "constraint": constraint,
        **changes,
    }
    return problems.from_clients(clients, **options)


def pooled_gap(w, x, group, chosen=None):
    """The largest difference of mean outputs over all people; `w` are the layer's parameters."""
    outputs = torch.sigmoid(x @ w[:3] + w[3])
    if chosen is None:
        chosen = torch.ones(len(x), dtype=torch.bool)
    means = torch.stack([outputs[chosen & (group == k)].mean() for k in group.unique()])
    return means.max() - means.min()


def one_round(problem, **changes):
    """The state and the report of a first round with all clients."""
    ((_, _, state, info),) = walk(replace(FEDSGM, **changes), problem, 1)
    return state, info


def gap_at_start(problem):
    return problem.metrics(problem.w0, problem)["g"]


@pytest.mark.parametrize(
    ("groups", "apart", "weights", "given"),
    [
        (2, True, None, None),
        (2, True, None, 1),
        (3, False, "rows", None),
        (5, True, (1.0, 5.0, 2.0, 0.5), None),
    ],
)
def test_a_round_steps_along_the_gradient_of_the_gap_over_all_rows(groups, apart, weights, given):
    x, y, group = people(groups, apart)
    chosen = None if given is None else y == given
    problem = make(divided(x, y, group), GroupGap("race", given=given), weights=weights)
    state, info = one_round(problem, lr=1.0, local_steps=1, tolerance=-1.0)  # sigma = 1
    slope, value = torch.func.grad_and_value(pooled_gap)(problem.w0, x, group, chosen)
    close(info["g_hat"], value)
    close(gap_at_start(problem), value)
    close(state.w, problem.w0 - slope, 1e-10)


def test_minibatches_estimate_the_gap():
    problem = make(divided(*people(apart=False)), GroupGap("sex"))
    method = replace(FEDSGM, value_batch_size=10)
    rng = torch.Generator().manual_seed(1)
    means = torch.zeros(4).double()
    for _ in range(300):
        draw = method.draw(problem, rng)
        fed = fl.Vectorized(problem)
        sent = fed.ask(FEDSGM.constraint_value, fed.clients(draw, model=problem.w0))
        means = means + sent.mean(0) / 300
    exact = problem.mean_losses(problem.w0)[1:]
    close(means / exact, torch.ones(4).double(), 0.05)


ROUNDS = {"rounds": 60, "evaluate_every": 10, "progress": False}


@pytest.mark.parametrize(
    ("groups", "switch"),
    [(2, fl.Hard()), pytest.param(3, fl.Soft(40.0), marks=pytest.mark.weekly)],
)
def test_progress_where_every_client_holds_one_group(switch, groups):
    x, y, group = people(groups)
    chunks = [rows for k in range(groups) for rows in torch.where(group == k)[0].chunk(2)]
    clients = [(x[rows], y[rows], group[rows]) for rows in chunks]
    method = replace(FEDSGM, lr=0.1, participants=2 * groups, switch=switch)
    problem = make(clients, GroupGap("sex"))
    trace = fl.run(method, problem, **ROUNDS | {"rounds": 100})
    assert trace.metrics["g"][0].max() > 0.06
    assert trace.late("g") < 0.08
    unconstrained = fl.run(replace(method, tolerance=2.0), problem, **ROUNDS)
    assert unconstrained.late("g") > 0.3
    assert trace.late("f") < trace.metrics["f"][0, 0]


WORK = {
    "lr": 0.15,
    "local_steps": 2,
    "participants": 4,
    "tolerance": 0.05,
}
METHODS = [
    fl.FedSGM(**WORK, uplink=fl.TopK(0.5), downlink=fl.TopK(0.5)),
    fl.PenaltyFedAvg(**WORK, rho=5.0),
    fl.MultiFedSGM(**WORK),
]


@pytest.fixture(scope="module")
def unconstrained_gap():
    """The gap that averaging ends with, which no constraint limits."""
    problem = make(divided(*people()), GroupGap("sex"))
    return fl.run(fl.FedAvg(0.15, 2, 4), problem, **ROUNDS).late("g")


@pytest.mark.parametrize(
    "method", further_weekly(METHODS, METHODS[:1]), ids=lambda m: type(m).__name__
)
def test_every_method_with_a_constraint_takes_it(method, unconstrained_gap):
    problem = make(divided(*people()), GroupGap("sex"))
    trace = fl.run(method, problem, **ROUNDS)
    assert trace.late("g") < 0.12 < unconstrained_gap


@pytest.mark.parametrize(
    "method", further_weekly(METHODS, METHODS[:1]), ids=lambda m: type(m).__name__
)
def test_methods_pass_the_common_checks_with_it(method):
    x, y, group = people()
    clients = [(x[k::3], y[k::3], group[k::3]) for k in range(3)]
    fl.check_algorithm(replace(method, participants=2), make(clients, GroupGap("sex")))


@pytest.mark.parametrize(
    ("method", "rounds"),
    [
        (fl.SGM(0.5, 0.05), 40),
        pytest.param(fl.PenaltySGM(0.5, 0.05, rho=5.0), 200, marks=pytest.mark.weekly),
        pytest.param(fl.ConEx(0.1, 0.5, 0.05), 60, marks=pytest.mark.weekly),
    ],
    ids=["SGM", "PenaltySGM", "ConEx"],
)
def test_and_so_do_methods_with_all_data_in_one_place(method, rounds):
    problem = make([people()], GroupGap("sex"))
    trace = fl.run(method, problem, **ROUNDS | {"rounds": rounds})
    assert trace.late("g") < 0.12


def test_two_gaps_and_a_function_and_the_largest_counts():
    x, y, race = people(3, apart=False)
    sex = (torch.arange(200) // 7) % 2

    def size(rows):
        return rows.mean(rows.output.squeeze(-1) ** 2)

    constraints = [GroupGap("race"), size, GroupGap("sex")]
    problem = make(divided(x, y, race, sex), constraints)
    assert problem.num_constraints == 3
    assert problem.num_statistics == 6 + 1 + 4
    w = problem.w0
    squares = (x @ w[:3] + w[3]).square()
    mean_square = torch.stack([squares[rows].mean() for rows in torch.arange(200).split(SIZES)])
    metrics = problem.metrics(w, problem)
    close(metrics["g_1"], pooled_gap(w, x, race))
    close(metrics["g_2"], mean_square.mean())
    close(metrics["g_3"], pooled_gap(w, x, sex))
    assert metrics["g"] == max(metrics["g_1"], metrics["g_2"], metrics["g_3"])
    _, info = one_round(problem)
    close(info["g_hat"], metrics["g"])
    assert info["bits_up"] == 4 * 32 * (11 + 4)  # 11 statistics and the step of 4 parameters
    assert info["bits_down"] == 4 * 32 * (1 + 11 + 4)  # sigma, 11 slopes, and the step


def test_two_gaps_become_small_together():
    x, y, race = people(3, apart=False)
    sex = (torch.arange(200) // 7) % 2
    problem = make(divided(x, y, race, sex), [GroupGap("race"), GroupGap("sex")])
    end = fl.run(replace(FEDSGM, lr=0.15), problem, **ROUNDS)
    assert end.late("g_1") < 0.1
    assert end.late("g_2") < 0.1


def test_the_bits_of_a_gap_by_hand():
    _, info = one_round(make(divided(*people()), GroupGap("sex")))
    assert info["bits_up"] == 4 * 32 * (4 + 4)  # two sums, two counts; the step of 4 parameters
    assert info["bits_down"] == 4 * 32 * (1 + 4 + 4)  # sigma, four slopes; the step


def test_a_round_without_a_group_has_the_gap_of_the_others():
    x, y, group = people(3)  # client 0 has group 0 alone
    problem = make(divided(x, y, group), GroupGap("race"))
    values = problem.pooled.values
    close(values(torch.tensor([2.0, 0.0, 6.0, 4.0, 0.0, 8.0])), torch.tensor([0.25]))
    close(values(torch.tensor([2.0, 0.0, 0.0, 4.0, 0.0, 0.0])), torch.zeros(1))
    gradient = torch.func.grad(lambda s: values(s).amax())(torch.tensor([2.0, 0, 0, 4.0, 0, 0]))
    close(gradient, torch.zeros(6))
    alone = fl.run(replace(FEDSGM, participants=1), problem, rounds=30, progress=False)
    assert np.isfinite(alone.metrics["g"]).all()


def test_columns_of_one_number_a_row_are_flat():
    x, y, group = people()
    gap = GroupGap("sex", given=1)
    flat = make(divided(x, y, group), gap)
    column = make(divided(x, y[:, None], group[:, None]), gap)
    close(flat.mean_losses(flat.w0)[1:], column.mean_losses(flat.w0)[1:])


def test_logits_of_two_classes_have_the_gap_of_their_difference():
    x, y, group = people()
    module = nn.Linear(3, 2).double()
    with torch.no_grad():
        module.weight.copy_(torch.stack([torch.zeros(3), layer().weight[0]]))
        module.bias.copy_(torch.tensor([0.0, 0.1]))

    def classes(rows):
        return rows.mean(cross_entropy(rows.output, rows.target, reduction="none"))

    gap = GroupGap("sex")
    two_logits = make(divided(x, y.long(), group), gap, module=module, objective=classes)
    one_logit = make(divided(x, y, group), gap)
    close(gap_at_start(two_logits), gap_at_start(one_logit), 1e-7)


def test_frames_with_groups_of_any_numbers():
    x, y, group = people(3, apart=False)
    frame = pd.DataFrame(x.numpy(), columns=["a", "b", "c"])
    frame = frame.assign(y=y.numpy(), race=group.numpy() * 10, site=np.arange(200) % 4)
    problem = problems.from_frame(
        frame,
        client="site",
        target="y",
        module=layer(),
        objective=loss,
        constraint=[GroupGap("race"), GroupGap("race", given=1)],
    )
    metrics = problem.metrics(problem.w0, problem)
    close(metrics["g_1"], pooled_gap(problem.w0, x, group))
    close(metrics["g_2"], pooled_gap(problem.w0, x, group, y == 1))
    assert problem.config["constraint"][1]["given"] == 1


GROUP = people()[2]


def column(y=None, group=GROUP):
    """Clients with another target or another column of groups."""
    x, usual_y, _ = people()
    return divided(x, usual_y if y is None else y, group)


def three_logits(rows):
    return rows.mean(rows.output.sum(1))


REFUSED = {
    "a target that no row has": (
        (column(), GroupGap("sex", given=2)),
        "given of GroupGap must be the target of some row in every group, got '2, which no row",
    ),
    "a target that a group has not": (
        (column(y=torch.where(GROUP == 1, 0.0, people()[1])), GroupGap("sex", given=1)),
        "no row of group 1 has",
    ),
    "one group": (
        (column(group=torch.ones(200)), GroupGap("sex")),
        "column 'sex' must hold a number for each group, from 2",
    ),
    "200 groups": (
        (column(group=people()[0][:, 1]), GroupGap("sex")),
        "from 2 to 20 groups, got '200 different",
    ),
    "three numbers a row": (
        (column(group=people()[0]), GroupGap("sex")),
        "column 'sex' must hold one number a row",
    ),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSED.values(), ids=REFUSED)
def test_refuses_what_has_no_gap(arguments, words):
    refuses(words, make, *arguments)


def test_refuses_what_gaps_do_not_go_with():
    gap = GroupGap("sex")
    words = "module must give one logit a row, or the logits of two classes"
    refuses(words, make, column(), gap, module=layer(3), objective=three_logits)
    problem = make(column(), gap)
    refuses("weighted: the problem must", problem.weighted, "rows")
    law = fl.PowerLaw(0.9, 0.3)
    ssca = fl.ConstrainedSSCA(1.0, law, law, 10.0)
    refuses("no pooled constraint", ssca.init, problem)
