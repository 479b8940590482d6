"""Modules that people bring: the gradients of autograd, or one sentence on what to change."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

import fedlib as fl
from fedlib import problems
from fedlib.problems.client_rows import plain_client
from tests.helpers.expect import close, refuses
from tests.helpers.randoms import generator

RNG = generator()
SIZES = (5, 3)
INPUTS = [torch.randn(m, 4, generator=RNG) for m in SIZES]
WORDS = [torch.randint(0, 6, (m, 4), generator=RNG) for m in SIZES]
SERIES = [torch.randn(m, 6, 2, generator=RNG) for m in SIZES]
TARGETS = [torch.randn(m, generator=RNG) for m in SIZES]


def square(rows):
    outputs = rows.output.flatten(1).mean(1)
    return rows.mean((outputs - rows.target) ** 2)


def make(module, inputs=INPUTS):
    clients = [*zip(inputs, TARGETS, strict=True)]
    return problems.from_clients(clients, module=module, objective=square)


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


class Last(nn.LSTM):
    """The last output of a recurrent layer."""

    def forward(self, x):
        outputs, _ = super().forward(x)
        return outputs[:, -1]


def shared():
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.Tanh(), layer)


def tied():
    layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    layers[2].weight = layers[0].weight
    return layers


def frozen():
    layers = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    layers[0].weight.requires_grad_(False)
    return layers


def hooked(register, function):
    layers = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    getattr(layers[0], register)(function)
    return layers


def scaled(module, x):
    return module.layer(x) * module.scale


RIGHT = {
    "a buffer": Own(scaled, scale=nn.Buffer(torch.tensor(2.0))),
    "a single number": Own(scaled, scale=nn.Parameter(torch.tensor(2.0))),
    "columns of a matrix": Own(
        lambda m, x: x @ m.p,
        p=nn.Parameter(torch.ones(2, 4).T),
    ),
    "an unused parameter": Own(lambda m, x: m.layer(x), p=nn.Parameter(torch.ones(2))),
    "batch norm at rest": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval(),
    "weight norm": parametrizations.weight_norm(nn.Linear(4, 3)),
    "orthogonal": parametrizations.orthogonal(nn.Linear(4, 4)),
    "a layer used twice": shared(),
    "tied weights": tied(),
    "a frozen weight": frozen(),
    "in place on its own": nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True)),
    "a hook before": hooked("register_forward_pre_hook", lambda _, x: (2 * x[0],)),
    "a hook after": hooked("register_forward_hook", lambda *call: 2 * call[2]),
    "LSTM": Last(2, 3, batch_first=True),
    "bag": nn.EmbeddingBag(6, 3, padding_idx=0),
    "padding": nn.Embedding(6, 3, padding_idx=0),
}
FURTHER_INPUTS = {"LSTM": SERIES, "bag": WORDS, "padding": WORDS}


def by_autograd(module, inputs, target):
    """The gradient of the module's own parameters where it stands."""
    twin = copy.deepcopy(module)
    outputs = twin(inputs).flatten(1).mean(1)
    loss = F.mse_loss(outputs, target)
    trained = [p for p in twin.parameters() if p.requires_grad]
    slopes = torch.autograd.grad(loss, trained, allow_unused=True, materialize_grads=True)
    return torch.cat([slope.flatten() for slope in slopes])


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", RIGHT)
def test_gradients_are_those_of_autograd(name):
    module = RIGHT[name]
    original = copy.deepcopy(module.state_dict())
    inputs = FURTHER_INPUTS.get(name, INPUTS)
    problem = make(module, inputs)
    for client in range(2):
        rows = plain_client(problem, client)
        slope = torch.func.grad(lambda w, rows=rows: problem.losses(w, rows)[0])
        expected = by_autograd(module, inputs[client], TARGETS[client])
        close(slope(problem.w0), expected, 1e-5)
    torch.testing.assert_close(module.state_dict(), original, rtol=0, atol=0)


def counting(module, x):
    module.calls = module.calls + 1
    return module.layer(x) * module.calls


def clamping(module, x):
    module.layer.weight.data.clamp_(-0.1, 0.1)
    return module.layer(x)


def slope_of_inputs(module, x):
    output = module.layer(x.requires_grad_())
    return torch.autograd.grad(output.sum(), x)[0]


def with_view():
    module = Own(lambda m, x: x @ m.view)
    module.view = module.layer.weight.view(-1)
    return module


REFUSED = [
    (
        "leave its buffers and frozen parameters as they are, got ['calls']",
        Own(counting, calls=nn.Buffer(torch.tensor(0.0))),
    ),
    (
        "leave its buffers and frozen parameters as they are, got ['calls']",
        Own(lambda m, x: m.layer(x) * m.calls.add_(1), calls=nn.Buffer(torch.tensor(0.0))),
    ),
    (
        "give the same output for the same inputs*take out what draws, counts or remembers",
        Own(counting, calls=0),
    ),
    (
        "give the same output for the same inputs*nn.Dropout may stay",
        Own(lambda m, x: F.dropout(m.layer(x), 0.5)),
    ),
    (
        "change no tensor in place, got ['inputs']; write x = x * 2",
        Own(lambda m, x: m.layer(x.mul_(2))),
    ),
    ("change no tensor in place, got ['param", Own(clamping)),
    (
        "register all its layers and parameters*nn.ModuleList",
        Own(lambda m, x: m.layers[0](x), layers=[nn.Linear(4, 4)]),
    ),
    ("be copied by copy.deepcopy*compute tensors", with_view()),
    (
        "compute each row's output from this row alone*take nn.GroupNorm",
        Own(lambda m, x: m.layer(x - x.mean(0))),
    ),
    (
        "have parameters of real numbers, got 'torch.complex64'",
        nn.Linear(4, 1, dtype=torch.complex64),
    ),
    ("have values, got 'Linear on the", nn.Linear(4, 1, device="meta")),
    (
        "have finite parameters, got 'NaN or infinity in scale'",
        Own(scaled, scale=nn.Parameter(torch.tensor(torch.nan))),
    ),
    ("take nn.LeakyReLU", nn.Sequential(nn.Linear(4, 1), nn.RReLU())),
    ("work on rows*take torch.func.grad", Own(slope_of_inputs)),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("words", "module"), REFUSED)
def test_what_is_no_function_of_its_parameters_is_one_sentence(words, module):
    refuses(f"module*{words}", make, module)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_the_old_norms_name_the_new_ones(norm):
    old = getattr(nn.utils, norm)(nn.Linear(4, 1)).eval()
    refuses(f"take torch.nn.utils.parametrizations.{norm}", fl.models.ravel, old)
