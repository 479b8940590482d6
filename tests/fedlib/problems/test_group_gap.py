"""Gaps between groups over the rows of all clients: values, gradients, bits, and refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import grad_and_value

import fedlib as fl
from fedlib import problems
from fedlib.problems import GroupGap
from tests.fedlib.problems.own import binary, entropy, quiet
from tests.helpers.expect import close, refuses
from tests.helpers.rounds import walk
from tests.helpers.weekly import further_weekly

SIZES = (40, 25, 70, 65)
FEDSGM = fl.FedSGM(lr=0.5, local_steps=3, participants=4, tolerance=0.05)
GAP = GroupGap("sex")


def people(groups=2, apart=True):
    """Inputs, targets and groups of 200 people; with `apart`, sorted by their group."""
    rng = torch.Generator().manual_seed(0)
    group = torch.arange(200) % groups
    if apart:
        group = group.sort().values
    x = torch.randn(200, 3, generator=rng, dtype=torch.float64)
    x[:, 0] += 1.5 * group
    noise = torch.randn(200, generator=rng)
    y = (x[:, 0] + 0.3 * noise > 0.8).double()
    return x, y, group


def layer(outputs=1):
    module = nn.Linear(3, outputs).double()
    weight = torch.arange(3.0 * outputs) / 4
    bias = torch.full((outputs,), 0.1)
    nn.utils.vector_to_parameters(
        torch.cat([weight, bias]).double(),
        module.parameters(),
    )
    return module


def divided(*tensors):
    return [*zip(*(x.split(SIZES) for x in tensors), strict=True)]


def make(clients, constraint=GAP, **changes):
    options = {"module": layer(), "objective": binary, **changes}
    return problems.from_clients(clients, constraint=constraint, **options)


def pooled_gap(w, x, group, chosen=True):
    """The largest difference of mean outputs over all people; `w` are the layer's parameters."""
    outputs = torch.sigmoid(x @ w[:3] + w[3])
    means = torch.stack([outputs[(group == k) & chosen].mean() for k in group.unique()])
    return means.max() - means.min()


def one_round(problem, **changes):
    """The state and the report of a first round with all clients."""
    ((_, _, state, info),) = walk(replace(FEDSGM, **changes), problem, 1)
    return state, info


def gap_at_start(problem):
    return problem.metrics(problem.w0, problem)["g"]


CASES = [
    (2, True, None, None),
    (2, True, None, 1),
    (3, False, "rows", None),
    (5, True, (1.0, 5.0, 2.0, 0.5), None),
]


@pytest.mark.parametrize(("groups", "apart", "weights", "given"), CASES)
def test_a_round_steps_along_the_gradient_of_the_gap_over_all_rows(groups, apart, weights, given):
    x, y, group = people(groups, apart)
    chosen = y == given if given else y > -1
    gap = GroupGap("race", given=given)
    problem = make(divided(x, y, 10 * group), gap, weights=weights)
    assert problem.config["constraint"]["given"] == given
    state, info = one_round(problem, lr=1.0, local_steps=1, tolerance=-1.0)  # sigma = 1
    slope, value = grad_and_value(pooled_gap)(problem.w0, x, group, chosen)
    close(info["g_hat"], value)
    close(gap_at_start(problem), value)
    close(state.w, problem.w0 - slope, 1e-10)


def test_minibatches_estimate_the_gap():
    problem = make(divided(*people(apart=False)))
    method = replace(FEDSGM, value_batch_size=10)
    rng = torch.Generator().manual_seed(1)
    fed = fl.Vectorized(problem)
    sent = []
    for _ in range(300):
        clients = fed.clients(method.draw(problem, rng), model=problem.w0)
        sent.append(fed.ask(FEDSGM.constraint_value, clients).mean(0))
    exact = problem.mean_losses(problem.w0)[1:]
    close(torch.stack(sent).mean(0) / exact, torch.ones_like(exact), 0.05)


def test_progress_where_every_client_holds_one_group():
    x, y, group = people()
    chunks = x.chunk(4), y.chunk(4), group.chunk(4)
    problem = make([*zip(*chunks, strict=True)])
    method = replace(FEDSGM, lr=0.1)
    trace = quiet(method, problem, 100)
    assert trace.metrics["g"][0].max() > 0.06
    assert trace.late("g") < 0.08
    assert trace.late("f") < trace.metrics["f"][0, 0]
    unconstrained = replace(method, tolerance=2.0)
    assert quiet(unconstrained, problem, 60).late("g") > 0.3


WORK = {"lr": 0.15, "local_steps": 2, "participants": 4, "tolerance": 0.05}
CLIENTS = divided(*people())
METHODS = {
    "FedSGM": fl.FedSGM(**WORK, uplink=fl.TopK(0.5), downlink=fl.TopK(0.5)),
    "PenaltyFedAvg": fl.PenaltyFedAvg(**WORK, rho=5.0),
    "MultiFedSGM": fl.MultiFedSGM(**WORK),
    "SGM": fl.SGM(0.5, 0.05),
    "PenaltySGM": fl.PenaltySGM(0.5, 0.05, rho=5.0),
    "ConEx": fl.ConEx(0.1, 0.5, 0.05),
}


@pytest.mark.parametrize("name", further_weekly(METHODS, ["FedSGM", "SGM"]))
def test_every_method_with_a_constraint_takes_it(name):
    method = METHODS[name]
    in_one_place = not hasattr(method, "participants")
    clients = [people()] if in_one_place else CLIENTS
    averaging = quiet(fl.FedAvg(0.15, 2, 4), make(CLIENTS), 60)
    assert quiet(method, make(clients), 200).late("g") < 0.12 < averaging.late("g")


def test_a_method_passes_the_common_checks_with_it():
    x, y, group = people()
    thirds = [(x[k::3], y[k::3], group[k::3]) for k in range(3)]
    fl.check_algorithm(replace(FEDSGM, participants=2), make(thirds))


def test_two_gaps_and_a_function_and_the_largest_counts():
    x, y, race = people(3, apart=False)
    sex = (torch.arange(200) // 7) % 2

    def size(rows):
        return rows.mean(rows.output.squeeze(-1) ** 2)

    constraints = [GroupGap("race"), size, GAP]
    problem = make(divided(x, y, race, sex), constraints)
    assert problem.num_constraints == 3
    assert problem.num_statistics == 6 + 1 + 4
    w = problem.w0
    squares = (x @ w[:3] + w[3]).square()
    mean_square = sum(piece.mean() for piece in squares.split(SIZES)) / 4
    metrics = problem.metrics(w, problem)
    close(metrics["g_1"], pooled_gap(w, x, race))
    close(metrics["g_2"], mean_square)
    close(metrics["g_3"], pooled_gap(w, x, sex))
    assert metrics["g"] == max(metrics["g_1"], metrics["g_2"], metrics["g_3"])
    _, info = one_round(problem)
    close(info["g_hat"], metrics["g"])
    assert info["bits_up"] == 4 * 32 * (11 + 4)  # 11 statistics and the step of 4 parameters
    assert info["bits_down"] == 4 * 32 * (1 + 11 + 4)  # sigma, 11 slopes, and the step


def test_a_round_without_a_group_has_the_gap_of_the_others():
    problem = make(divided(*people(3)))  # client 0 has group 0 alone
    values = problem.pooled.values
    without_one = torch.tensor([2.0, 0.0, 6.0, 4.0, 0.0, 8.0])
    close(values(without_one), torch.tensor([0.25]))
    one_group = torch.tensor([2.0, 0.0, 0.0, 4.0, 0.0, 0.0])
    slope, gap = grad_and_value(lambda sums: values(sums).amax())(one_group)
    assert gap == 0
    assert not slope.any()
    alone = replace(FEDSGM, participants=1)
    assert np.isfinite(quiet(alone, problem, 30).metrics["g"]).all()


def test_columns_of_one_number_a_row_are_flat():
    x, y, group = people()
    gap = GroupGap("sex", given=1)
    flat = make(divided(x, y, group), gap)
    column = make(divided(x, y[:, None], group[:, None]), gap)
    close(flat.mean_losses(flat.w0)[1:], column.mean_losses(flat.w0)[1:])


def test_logits_of_two_classes_have_the_gap_of_their_difference():
    x, y, group = people()
    module = layer(2)
    difference = layer()
    difference.weight.data = module.weight.data.diff(dim=0)
    difference.bias.data = module.bias.data.diff()
    two_logits = make(divided(x, y.long(), group), module=module, objective=entropy)
    one_logit = make(divided(x, y, group), module=difference)
    close(gap_at_start(two_logits), gap_at_start(one_logit), 1e-7)


X, Y, GROUP = people()
NONE_IN_GROUP_1 = torch.where(GROUP == 1, 0.0, Y)
REFUSED = [
    (
        "given of GroupGap must be the target of some row in every group, got '2, which no row",
        (X, Y, GROUP),
        2,
    ),
    ("no row of group 1 has", (X, NONE_IN_GROUP_1, GROUP), 1),
    ("column 'sex' must hold a number for each group, from 2", (X, Y, torch.ones(200)), None),
    ("from 2 to 20 groups, got '200 different", (X, Y, X[:, 1]), None),
    ("column 'sex' must hold one number a row", (X, Y, X), None),
]


@pytest.mark.parametrize(("words", "rows", "given"), REFUSED)
def test_refuses_what_has_no_gap(words, rows, given):
    refuses(words, make, divided(*rows), GroupGap("sex", given=given))


def test_refuses_what_gaps_do_not_go_with():
    clients = divided(X, Y, GROUP)

    def three_logits(rows):
        return rows.mean(rows.output.sum(1))

    words = "module must give one logit a row, or the logits of two classes"
    refuses(words, make, clients, module=layer(3), objective=three_logits)
    problem = make(clients)
    refuses("weighted: the problem must", problem.weighted, "rows")
    law = fl.PowerLaw(0.9, 0.3)
    ssca = fl.ConstrainedSSCA(1.0, law, law, 10.0)
    refuses("no pooled constraint", ssca.init, problem)
