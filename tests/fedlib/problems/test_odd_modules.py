"""Modules that people bring: the gradients of autograd, or one sentence on what to change."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize

import fedlib as fl
from fedlib import problems
from fedlib.problems.client_rows import ClientRows, plain_client
from tests.helpers.expect import close, refuses

RNG = torch.Generator().manual_seed(0)
INPUTS = [torch.randn(m, 4, generator=RNG) for m in (5, 3)]
WORDS = [torch.randint(0, 6, (m, 4), generator=RNG) for m in (5, 3)]
SERIES = [torch.randn(m, 6, 2, generator=RNG) for m in (5, 3)]
TARGETS = [torch.randn(m, generator=RNG) for m in (5, 3)]


def square(rows):
    outputs = rows.output.reshape(len(rows.output), -1).mean(1)
    return rows.mean((outputs - rows.target) ** 2)


def make(module, inputs=INPUTS, objective=square):
    clients = [*zip(inputs, TARGETS, strict=True)]
    return problems.from_clients(clients, module=module, objective=objective)


class Own(nn.Module):
    """A linear layer and a function of it and of the inputs."""

    def __init__(self, forward, **attributes):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.function = forward
        for name, attribute in attributes.items():
            setattr(self, name, attribute)

    def forward(self, x):
        return self.function(self, x)


class Symmetric(nn.Module):
    def forward(self, matrix):
        return matrix.triu() + matrix.triu(1).T


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.there = nn.Linear(4, 4, bias=False)
        self.back = nn.Linear(4, 4, bias=False)
        self.back.weight = self.there.weight

    def forward(self, x):
        return self.back(torch.tanh(self.there(x)))


class Last(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(2, 3, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0][:, -1]


def parametrized():
    layer = nn.Linear(4, 4)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return nn.Sequential(layer, nn.Linear(4, 1))


def shared():
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(4, 1))


def frozen_weight():
    network = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    network[0].weight.requires_grad_(False)
    return network


def hooked(register, function):
    network = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    getattr(network[0], register)(function)
    return network


RIGHT = {
    "a buffer": lambda: Own(lambda m, x: m.layer(x) * m.scale, scale=nn.Buffer(torch.tensor(2.0))),
    "a plain tensor": lambda: Own(lambda m, x: m.layer(x) * m.scale, scale=torch.tensor(2.0)),
    "batch norm at rest": lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval(),
    "weight norm": lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 3))),
    "spectral norm at rest": lambda: parametrizations.spectral_norm(nn.Linear(4, 3)).eval(),
    "orthogonal": lambda: parametrizations.orthogonal(nn.Linear(4, 4)),
    "a parametrization": parametrized,
    "a layer used twice": shared,
    "tied weights": Tied,
    "a frozen weight": frozen_weight,
    "in place on its own": lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True)),
    "a list of parameters": lambda: Own(
        lambda m, x: x @ m.more[0] + m.layer(x)[:, 0], more=nn.ParameterList([torch.ones(4)])
    ),
    "a single number": lambda: Own(
        lambda m, x: m.layer(x) * m.p, p=nn.Parameter(torch.tensor(2.0))
    ),
    "columns of a matrix": lambda: Own(lambda m, x: x @ m.p, p=nn.Parameter(torch.ones(2, 4).T)),
    "an unused parameter": lambda: Own(lambda m, x: m.layer(x), p=nn.Parameter(torch.ones(2))),
    "doubles": lambda: nn.Linear(4, 1).double(),
    "a hook before": lambda: hooked("register_forward_pre_hook", lambda _, x: (2 * x[0],)),
    "a hook after": lambda: hooked("register_forward_hook", lambda *values: 2 * values[2]),
    "a method kept": lambda: Own(lambda m, x: m.layer(x)),
    "a cell": lambda: nn.RNNCell(4, 3),
}


def gradient_by_autograd(module, w, inputs, target):
    """The gradient of the module's own parameters."""
    twin = copy.deepcopy(module)
    trained = [p for p in twin.parameters() if p.requires_grad]
    nn.utils.vector_to_parameters(w.clone(), trained)
    weight = torch.full_like(target, 1 / len(target))
    loss = square(ClientRows(twin(inputs), target, {}, weight))
    gradients = torch.autograd.grad(loss, trained, allow_unused=True, materialize_grads=True)
    return torch.cat([gradient.flatten() for gradient in gradients])


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize(
    ("make_module", "inputs"),
    [
        *((make_module, INPUTS) for make_module in RIGHT.values()),
        (Last, SERIES),
        (lambda: nn.EmbeddingBag(6, 3, padding_idx=0), WORDS),
        (lambda: nn.Embedding(6, 3, padding_idx=0), WORDS),
    ],
    ids=[*RIGHT, "LSTM", "bag", "padding"],
)
def test_gradients_are_those_of_autograd(make_module, inputs):
    module = make_module()
    original = copy.deepcopy(module.state_dict())
    problem = make(module, inputs)
    rng = torch.Generator().manual_seed(1)
    w = problem.w0 + 0.1 * torch.randn(problem.dim, generator=rng).to(problem.w0)
    for client in range(2):
        rows = plain_client(problem, client)
        slope = torch.func.grad(lambda u, rows=rows: problem.losses(u, rows)[0])
        floats = inputs[client].is_floating_point()
        x = inputs[client].to(w.dtype) if floats else inputs[client]
        close(slope(w), gradient_by_autograd(module, w, x, TARGETS[client].to(w.dtype)), 1e-5)
    current = module.state_dict()
    assert all(torch.equal(current[name], original[name]) for name in original)


def counting(module, x):
    module.calls = module.calls + 1
    return module.layer(x) * module.calls


def clamping(module, x):
    module.layer.weight.data.clamp_(-0.1, 0.1)
    return module.layer(x)


def with_view():
    module = Own(lambda m, x: x @ m.view)
    module.view = module.layer.weight.view(-1)
    return module


REFUSED = {
    "a buffer that counts": (
        lambda: Own(counting, calls=nn.Buffer(torch.tensor(0.0))),
        "must leave its buffers and frozen parameters as they are, got ['calls']",
    ),
    "a number that counts": (
        lambda: Own(counting, calls=0),
        "must give the same output for the same inputs*take out what draws, counts or remembers",
    ),
    "numbers of numpy": (
        lambda: Own(lambda m, x: m.layer(x) + np.random.rand()),  # noqa: TID251
        "must give the same output for the same inputs",
    ),
    "dropout as a function": (
        lambda: Own(lambda m, x: F.dropout(m.layer(x), 0.5)),
        "must give the same output for the same inputs*nn.Dropout may stay",
    ),
    "inputs changed": (
        lambda: Own(lambda m, x: m.layer(x.mul_(2))),
        "must change no tensor in place, got ['inputs']; write x = x * 2",
    ),
    "parameters changed": (lambda: Own(clamping), "must change no tensor in place, got ['param"),
    "layers in a list": (
        lambda: Own(lambda m, x: m.layer(m.layers[0](x)), layers=[nn.Linear(4, 4)]),
        "must register all its layers and parameters*nn.ModuleList",
    ),
    "a view of a parameter": (with_view, "must be copied by copy.deepcopy*compute tensors"),
    "rows in one another": (
        lambda: Own(lambda m, x: m.layer(x - x.mean(0))),
        "must compute each row's output from this row alone*take nn.GroupNorm",
    ),
    "complex numbers": (
        lambda: Own(lambda m, x: (x * m.p).abs(), p=nn.Parameter(torch.ones(4) + 0j)),
        "must have trainable parameters of one dtype",
    ),
    "complex numbers alone": (
        lambda: nn.Linear(4, 1).to(torch.complex64),
        "must have parameters of real numbers, got 'torch.complex64'",
    ),
    "no values": (lambda: nn.Linear(4, 1, device="meta"), "must have values, got 'Linear on the"),
    "not finite": (
        lambda: Own(lambda m, x: m.layer(x), p=nn.Parameter(torch.tensor(torch.nan))),
        "must have finite parameters, got 'NaN or infinity in p'",
    ),
    "random slopes": (lambda: nn.Sequential(nn.Linear(4, 1), nn.RReLU()), "take nn.LeakyReLU"),
    "autograd within": (
        lambda: Own(
            lambda m, x: torch.autograd.grad(m.layer(x.requires_grad_()).sum(), x)[0],
        ),
        "must work on rows*take torch.func.grad",
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("make_module", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_function_of_its_parameters_is_one_sentence(make_module, words):
    refuses(f"module*{words}", make, make_module())


@pytest.mark.parametrize(
    ("option", "remedy"),
    [("sparse", True), ("max_norm", 0.5), ("scale_grad_by_freq", True)],
)
@pytest.mark.parametrize("layer", [nn.Embedding, nn.EmbeddingBag])
def test_options_of_embeddings(layer, option, remedy):
    module = layer(6, 3, **{option: remedy})
    refuses(f"{layer.__name__}'; leave out {option}", fl.models.ravel, module)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_the_old_norms_name_the_new_ones(norm):
    old = getattr(nn.utils, norm)(nn.Linear(4, 1)).eval()
    refuses(f"take torch.nn.utils.parametrizations.{norm}", fl.models.ravel, old)


def test_a_client_whose_rows_fail_is_named():
    def entropy(rows):
        return rows.mean(F.cross_entropy(rows.output, rows.target, reduction="none"))

    clients = [(x, torch.arange(len(x)) % 2) for x in INPUTS]
    clients[1] = (INPUTS[1], torch.tensor([0, 1, 2]))
    words = "objective 'entropy' on client 1 must work on rows*Target 2 is out of bounds"
    refuses(words, problems.from_clients, clients, module=nn.Linear(4, 2), objective=entropy)
