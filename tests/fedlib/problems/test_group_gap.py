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
from fedlib.engine.batch import CAPTURE
from fedlib.problems import GroupGap
from tests.helpers.expect import close, refuses
from tests.helpers.rounds import walk

SIZES = (40, 25, 70, 65)
FEDSGM = fl.FedSGM(lr=0.5, local_steps=3, participants=4, tolerance=0.05)


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
    return [tuple(part) for part in zip(*(x.split(SIZES) for x in tensors), strict=True)]


def make(clients, constraint, **changes):
    options = {"module": layer(), "objective": loss, "constraint": constraint, **changes}
    return problems.from_clients(clients, **options)


def pooled_gap(w, x, group, chosen=None):
    """The largest difference of mean outputs over all people; `w` are the layer's parameters."""
    outputs = torch.sigmoid(x @ w[:3] + w[3])
    chosen = torch.ones(len(x), dtype=torch.bool) if chosen is None else chosen
    means = [outputs[chosen & (group == k)].mean() for k in group.unique()]
    return torch.stack(means).max() - torch.stack(means).min()


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("groups", [2, 3, 5])
@pytest.mark.parametrize("weights", [None, "rows", (1.0, 5.0, 2.0, 0.5)])
def test_a_round_steps_along_the_gradient_of_the_gap_over_all_rows(apart, groups, weights):
    x, y, group = people(groups, apart)
    problem = make(divided(x, y, group), GroupGap("race"), weights=weights)
    method = fl.FedSGM(lr=1.0, local_steps=1, participants=4, tolerance=-1.0)  # sigma = 1
    ((_, _, state, info),) = walk(method, problem, 1)
    slope, value = torch.func.grad_and_value(pooled_gap)(problem.w0, x, group)
    close(info["g_hat"], value)
    close(problem.metrics(problem.w0, problem)["g"], value)
    close(state.w, problem.w0 - slope, 1e-10)


def test_equal_opportunity_compares_the_rows_with_its_target():
    x, y, group = people()
    problem = make(divided(x, y, group), GroupGap("sex", given=1))
    method = fl.FedSGM(lr=1.0, local_steps=1, participants=4, tolerance=-1.0)
    ((_, _, state, info),) = walk(method, problem, 1)
    slope, value = torch.func.grad_and_value(pooled_gap)(problem.w0, x, group, y == 1)
    close(info["g_hat"], value)
    close(state.w, problem.w0 - slope, 1e-10)


def test_minibatches_estimate_the_gap():
    x, y, group = people(apart=False)
    problem = make(divided(x, y, group), GroupGap("sex"))
    means = torch.zeros(4).double()
    batch = problem.all_clients()
    rng = torch.Generator().manual_seed(1)
    for _ in range(300):
        draw = fl.FedSGM(0.1, 1, 4, 0.05, value_batch_size=10).draw(problem, rng)
        clients = fl.Vectorized(problem).clients(draw, model=problem.w0)
        sent = fl.Vectorized(problem).ask(FEDSGM.constraint_value, clients)
        means = means + sent.mean(0) / 300
    exact = problem.mean_losses(problem.w0)[1:]
    assert batch.weight.shape[0] == 4
    close(means / exact, torch.ones(4).double(), 0.05)


#: As few rounds as are captured, enough for the values below; every tenth is evaluated.
LONG = {"rounds": CAPTURE, "evaluate_every": 10, "progress": False}


@pytest.mark.parametrize(
    ("groups", "switch"),
    [(2, fl.Hard()), pytest.param(3, fl.Soft(40.0), marks=pytest.mark.weekly)],
)
def test_progress_where_every_client_holds_one_group(switch, groups):
    x, y, group = people(groups)
    order = [torch.where(group == k)[0].chunk(2) for k in range(groups)]
    parts = [part for pair in order for part in pair]
    clients = [(x[rows], y[rows], group[rows]) for rows in parts]
    method = replace(FEDSGM, lr=0.1, participants=2 * groups, switch=switch)
    problem = make(clients, GroupGap("sex"))
    trace = fl.run(method, problem, **LONG | {"rounds": 300})
    assert trace.metrics["g"][0].max() > 0.06
    assert trace.late("g") < 0.08
    unconstrained = fl.run(replace(method, tolerance=2.0), problem, **LONG)
    assert unconstrained.late("g") > 0.3
    assert trace.late("f") < trace.metrics["f"][0, 0]


WORK = {"lr": 0.15, "local_steps": 2, "participants": 4, "tolerance": 0.05}
METHODS = [
    fl.FedSGM(**WORK, uplink=fl.TopK(0.5), downlink=fl.TopK(0.5)),
    fl.PenaltyFedAvg(**WORK, rho=5.0),
    fl.MultiFedSGM(**WORK),
]


@pytest.fixture(scope="module")
def free():
    """The gap that averaging ends with, which no constraint holds."""
    problem = make(divided(*people()), GroupGap("sex"))
    return fl.run(fl.FedAvg(0.15, 2, 4), problem, **LONG).late("g")


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_every_method_with_a_constraint_takes_it(method, free):
    problem = make(divided(*people()), GroupGap("sex"))
    trace = fl.run(method, problem, **LONG)
    assert trace.late("g") < 0.12 < free
    x, y, group = people()
    three = make([(x[k::3], y[k::3], group[k::3]) for k in range(3)], GroupGap("sex"))
    fl.check_algorithm(replace(method, participants=2), three)


@pytest.mark.parametrize(
    "method",
    [fl.SGM(0.5, 0.05), fl.PenaltySGM(0.5, 0.05, rho=5.0), fl.ConEx(0.1, 0.5, 0.05)],
    ids=lambda m: type(m).__name__,
)
def test_and_so_do_methods_with_all_data_in_one_place(method):
    problem = make([people()], GroupGap("sex"))
    trace = fl.run(method, problem, **LONG)
    assert trace.late("g") < 0.12


def test_two_gaps_and_a_function_and_the_largest_counts():
    x, y, group = people(3, apart=False)
    other = (torch.arange(200) // 7) % 2

    def size(rows):
        return rows.mean(rows.output.squeeze(-1) ** 2)

    constraints = [GroupGap("race"), size, GroupGap("sex")]
    problem = make(divided(x, y, group, other), constraints)
    assert (problem.num_constraints, problem.num_statistics) == (3, 6 + 1 + 4)
    found = problem.metrics(problem.w0, problem)
    close(found["g_1"], pooled_gap(problem.w0, x, group))
    close(found["g_2"], torch.stack([(x[p] @ problem.w0[:3] + problem.w0[3]).square().mean()
                                     for p in torch.arange(200).split(SIZES)]).mean())  # fmt: skip
    close(found["g_3"], pooled_gap(problem.w0, x, other))
    assert found["g"] == max(found[f"g_{k}"] for k in (1, 2, 3))
    ((_, _, _, info),) = walk(FEDSGM, problem, 1)
    close(info["g_hat"], found["g"])
    assert info["bits_up"] == 4 * 32 * (11 + 4)  # 11 statistics and the step of 4 parameters
    assert info["bits_down"] == 4 * 32 * (1 + 11 + 4)  # sigma, 11 slopes, and the step
    both = make(divided(x, y, group, other), [GroupGap("race"), GroupGap("sex")])
    end = fl.run(replace(FEDSGM, lr=0.15), both, **LONG)
    assert end.late("g_1") < 0.1
    assert end.late("g_2") < 0.1


def test_the_bits_of_a_gap_by_hand():
    problem = make(divided(*people()), GroupGap("sex"))
    ((_, _, _, info),) = walk(FEDSGM, problem, 1)
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


def test_shapes_that_hold_one_number_a_row():
    x, y, group = people()
    flat = make(divided(x, y, group), GroupGap("sex", given=1))
    column = make(divided(x, y[:, None], group[:, None]), GroupGap("sex", given=1))
    close(flat.mean_losses(flat.w0)[1:], column.mean_losses(flat.w0)[1:])
    module = nn.Linear(3, 2).double()
    with torch.no_grad():
        module.weight.copy_(torch.stack([torch.zeros(3), layer().weight[0]]))
        module.bias.copy_(torch.tensor([0.0, 0.1]))

    def classes(rows):
        return rows.mean(cross_entropy(rows.output, rows.target, reduction="none"))

    two = make(divided(x, y.long(), group), GroupGap("sex"), module=module, objective=classes)
    one = make(divided(x, y, group), GroupGap("sex"))
    found = [p.metrics(p.w0, p)["g"] for p in (one, two)]
    close(found[0], found[1], 1e-7)


def test_frames_with_groups_of_any_numbers():
    x, y, group = people(3, apart=False)
    frame = pd.DataFrame(x.numpy(), columns=["a", "b", "c"])
    frame = frame.assign(y=y.numpy(), race=group.numpy() * 10, site=np.arange(200) % 4)
    problem = problems.from_frame(
        frame, client="site", target="y", module=layer(), objective=loss,
        constraint=[GroupGap("race"), GroupGap("race", given=1)],
    )  # fmt: skip
    found = problem.metrics(problem.w0, problem)
    close(found["g_1"], pooled_gap(problem.w0, x, group))
    close(found["g_2"], pooled_gap(problem.w0, x, group, y == 1))
    assert problem.config["constraint"][1]["given"] == 1


def test_refuses_what_has_no_gap():
    x, y, group = people()
    nobody = divided(x, y, group)
    refuses(
        "given of GroupGap must be the target of some row in every group, got '2, which no row",
        make, nobody, GroupGap("sex", given=2),
    )  # fmt: skip
    only_men = divided(x, torch.where(group == 1, 0.0, y), group)
    refuses("no row of group 1 has", make, only_men, GroupGap("sex", given=1))
    refuses("column 'sex' must hold a number for each group, from 2", make,
            divided(x, y, torch.ones(200)), GroupGap("sex"))  # fmt: skip
    refuses(
        "from 2 to 20 groups, got '200 different", make, divided(x, y, x[:, 1]), GroupGap("sex")
    )
    refuses("column 'sex' must hold one number a row", make, divided(x, y, x), GroupGap("sex"))

    def three(rows):
        return rows.mean(rows.output.sum(1))

    refuses("module must give one logit a row, or the logits of two classes", make, nobody,
            GroupGap("sex"), module=layer(3), objective=three)  # fmt: skip
    problem = make(nobody, GroupGap("sex"))
    refuses("weighted: the problem must", problem.weighted, "rows")
    rule = fl.PowerLaw(0.9, 0.3)
    ssca = fl.ConstrainedSSCA(1.0, rule, rule, 10.0)
    refuses("no pooled constraint", ssca.init, problem)
