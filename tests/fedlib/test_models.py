"""Networks as vectors: ravel agrees with the module, its gradients and a batch of parameters."""

import pytest
import torch
from torch import nn
from torch.func import grad
from torch.nn.utils import parametrizations, parametrize, prune

from fedlib import models
from tests.helpers.expect import refuses
from tests.helpers.randoms import normal

MODULES = {
    "softmax": lambda: models.mlp((5, 3)),
    "no bias": lambda: nn.Linear(5, 1, bias=False),
    "mlp": lambda: models.mlp((5, 4, 3), nn.Tanh),
    "norms": lambda: nn.Sequential(models.mlp((5, 4)), nn.LayerNorm(4)),
    "dropout of zero": lambda: nn.Sequential(nn.Linear(5, 2), nn.Dropout(0.0)),
    "batch statistics": lambda: nn.Sequential(
        nn.Linear(5, 2),
        nn.BatchNorm1d(2, track_running_stats=False),
    ),
}


@pytest.fixture(params=MODULES.values(), ids=MODULES)
def module(request):
    return request.param().double()


def test_ravel_is_the_module_at_w0_and_elsewhere(module):
    w0, apply = models.ravel(module)
    x = normal(7, 5)
    assert not w0.requires_grad
    assert torch.equal(apply(w0, x), module(x))
    w = normal(*w0.shape)
    elsewhere = apply(w, x)
    assert torch.equal(models.ravel(module)[0], w0)  # the module itself is left alone
    nn.utils.vector_to_parameters(w, module.parameters())
    assert torch.equal(elsewhere, module(x))


def test_dtype_and_device_follow_w():
    module = models.mlp((5, 4, 3))
    module[0].requires_grad_(False)
    w0, apply = models.ravel(module)
    x = normal(2, 5)
    assert w0.dtype == torch.float32
    assert apply(w0.double(), x).dtype == torch.float64
    assert apply(w0.to("meta"), x.float().to("meta")).device.type == "meta"


def test_parameters_of_another_shape_are_refused():
    w0, apply = models.ravel(models.mlp((5, 3)))
    for w in (w0[:-1], torch.stack([w0, w0])):
        refuses("apply: w must be a * of floats of * got", apply, w, torch.zeros(1, 5))


TWO_DTYPES = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
REFUSED = [
    (
        "got 'BatchNorm1d (1)'; take nn.GroupNorm",
        nn.Sequential(nn.ReLU(), nn.BatchNorm1d(2)),
    ),
    (
        "got 'dropout in Dropout1d (0)'; leave",
        nn.Sequential(nn.Dropout1d(0.1), nn.Linear(2, 2)),
    ),
    ("got 'dropout in MultiheadAttention", nn.MultiheadAttention(4, 2, dropout=0.1)),
    ("got 'dropout in LSTM", nn.LSTM(2, 2, num_layers=2, dropout=0.5)),
    ("Embedding'; leave out sparse", nn.Embedding(6, 3, sparse=True)),
    ("Embedding'; leave out max_norm", nn.Embedding(6, 3, max_norm=0.5)),
    ("EmbeddingBag'; leave out scale_grad", nn.EmbeddingBag(6, 3, scale_grad_by_freq=True)),
    ("have trainable parameters, got 'none'; call requires_grad_()", nn.ReLU()),
    ("one dtype, got 'torch.float32 and torch.float64'", TWO_DTYPES),
]


@pytest.mark.parametrize(("words", "module"), REFUSED)
def test_ravel_refuses(words, module):
    refuses(f"ravel: module must *{words}", models.ravel, module)


HOOKS = {
    "gradients": lambda layer: layer.weight.register_hook(lambda g: 0 * g),
    "added gradients": lambda layer: layer.weight.register_post_accumulate_grad_hook(print),
    "backward": lambda layer: layer.register_full_backward_hook(print),
    "before backward": lambda layer: layer.register_full_backward_pre_hook(print),
    "pruning": lambda layer: prune.l1_unstructured(layer, "weight", 1),
    "spectral norm": parametrizations.spectral_norm,
}


@pytest.fixture
def layers():
    return nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))


@pytest.mark.parametrize("register", HOOKS.values(), ids=HOOKS)
def test_hooks_that_would_not_be_called_are_refused(layers, register):
    register(layers[1])
    refuses("ravel: module must have no *(1", models.ravel, layers)


def test_frozen_parameters_and_forward_hooks_may_have_hooks(layers):
    layers[1].register_forward_hook(lambda *call: 2 * call[-1])
    layers[0].weight.register_hook(lambda g: g)
    layers[0].requires_grad_(False)
    w, apply = models.ravel(layers)
    x = torch.ones(1, 3)
    assert torch.equal(apply(w, x), layers(x).detach())


class Mask(nn.Module):
    """Zero for the second weight."""

    def forward(self, weight):
        return weight * torch.tensor([1.0, 0.0, 1.0])


def test_a_mask_as_a_parametrization_keeps_zeros():
    layer = nn.Linear(3, 1)
    parametrize.register_parametrization(layer, "weight", Mask())
    w, apply = models.ravel(layer)
    slope = grad(lambda w: apply(w, torch.ones(2, 3)).sum())(w)
    assert sorted(slope.tolist()) == [0, 2, 2, 2]
