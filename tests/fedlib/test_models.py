"""Networks as vectors: ravel agrees with the module, its gradients and a batch of parameters."""

import pytest
import torch
from torch import nn
from torch.func import grad, jacrev, vmap
from torch.nn.utils import prune

from fedlib import models
from tests.helpers.expect import refuses
from tests.helpers.randoms import generator

MODULES = {
    "softmax": lambda: models.mlp((5, 3)),
    "no bias": lambda: nn.Linear(5, 1, bias=False),
    "mlp": lambda: models.mlp((5, 4, 3), nn.Tanh, rng=generator()),
    "norms": lambda: nn.Sequential(models.mlp((5, 4)), nn.LayerNorm(4)),
}


@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES)
class TestRavel:
    def test_is_the_module_at_w0_and_elsewhere(self, make):
        module = make().double()
        w0, apply = models.ravel(module)
        x = torch.randn(7, 5, generator=generator(1), dtype=torch.float64)
        assert w0.shape == (sum(p.numel() for p in module.parameters()),)
        assert not w0.requires_grad
        assert torch.equal(apply(w0, x), module(x))
        w = torch.randn(w0.shape, generator=generator(2), dtype=torch.float64)
        changed = make().double()
        nn.utils.vector_to_parameters(w, changed.parameters())
        assert torch.equal(apply(w, x), changed(x))
        assert torch.equal(models.ravel(module)[0], w0)  # the module itself is left alone

    def test_gradient_is_autograd_of_the_module(self, make):
        module = make().double()
        w0, apply = models.ravel(module)
        x = torch.randn(7, 5, generator=generator(1), dtype=torch.float64)
        module(x).square().sum().backward()
        expected = torch.cat([p.grad.flatten() for p in module.parameters()])
        ours = grad(lambda w: apply(w, x).square().sum())(w0)
        assert torch.allclose(ours, expected, rtol=1e-12)

    def test_vmap_over_parameters_and_data_is_the_loop(self, make):
        w0, apply = models.ravel(make().double())
        w = w0 + torch.randn(4, len(w0), generator=generator(1), dtype=torch.float64)
        x = torch.randn(4, 7, 5, generator=generator(2), dtype=torch.float64)
        together = vmap(apply)(w, x)
        alone = torch.stack([apply(*pair) for pair in zip(w, x, strict=True)])
        assert torch.allclose(together, alone)
        slopes = vmap(jacrev(lambda v, b: apply(v, b).mean()))(w, x)
        assert slopes.shape == w.shape

    def test_dtype_follows_w(self, make):
        w0, apply = models.ravel(make())
        x = torch.randn(2, 5, generator=generator(1), dtype=torch.float64)
        assert w0.dtype == torch.float32
        assert apply(w0.double(), x).dtype == torch.float64
        assert apply(w0.to("meta"), x.float().to("meta")).device.type == "meta"


def test_parameters_of_another_shape_are_refused():
    w0, apply = models.ravel(models.mlp((5, 3)))
    for w in (w0[:-1], torch.stack([w0, w0])):
        refuses("apply: w must be a * of floats of * got", apply, w, torch.zeros(1, 5))


def test_tied_parameters_are_one():
    module = nn.Sequential(nn.Linear(3, 3, bias=False), nn.ReLU(), nn.Linear(3, 3, bias=False))
    module[2].weight = module[0].weight
    w0, apply = models.ravel(module)
    x = torch.ones(2, 3)
    assert w0.shape == (9,)
    assert torch.equal(
        apply(2 * w0, x), torch.relu(x @ (2 * w0.view(3, 3)).T) @ (2 * w0.view(3, 3)).T
    )


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (
            nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)),
            "got 'BatchNorm1d (1)'; take nn.GroupNorm",
        ),
        (
            nn.Sequential(nn.Linear(2, 2), nn.Dropout1d(0.1)),
            "got 'dropout in Dropout1d (1)'; leave",
        ),
        (nn.MultiheadAttention(4, 2, dropout=0.1), "got 'dropout in MultiheadAttention"),
        (nn.LSTM(2, 2, num_layers=2, dropout=0.5), "got 'dropout in LSTM"),
        (nn.ReLU(), "have trainable parameters, got 'none'; call requires_grad_()"),
        (
            nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()),
            "one dtype, got 'torch.float32 and torch.float64'",
        ),
    ],
)
def test_ravel_refuses(module, text):
    refuses(f"ravel: module must *{text}", models.ravel, module)


def hooked(register):
    module = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    register(module[1])
    return module


HOOKS = {
    "gradients": lambda layer: layer.weight.register_hook(lambda g: 0 * g),
    "gradients that were added": lambda layer: layer.weight.register_post_accumulate_grad_hook(
        print
    ),
    "backward": lambda layer: layer.register_full_backward_hook(print),
    "before backward": lambda layer: layer.register_full_backward_pre_hook(print),
    "pruning": lambda layer: prune.l1_unstructured(layer, "weight", 1),
    "spectral norm": nn.utils.parametrizations.spectral_norm,
}


@pytest.mark.parametrize("register", HOOKS.values(), ids=HOOKS)
def test_hooks_that_would_not_be_called_are_refused(register):
    refuses("ravel: module must have no *(1", models.ravel, hooked(register))


def test_frozen_parameters_and_forward_hooks_may_have_hooks():
    module = hooked(lambda layer: layer.register_forward_hook(lambda *call: 2 * call[-1]))
    module[0].weight.register_hook(lambda g: g)
    module[0].requires_grad_(False)
    w, apply = models.ravel(module)
    assert torch.equal(apply(w, torch.ones(1, 3)), module(torch.ones(1, 3)).detach())


class Mask(nn.Module):
    """Zero for the weights that are not chosen."""

    def __init__(self, chosen):
        super().__init__()
        self.register_buffer("chosen", chosen)

    def forward(self, weight):
        return weight * self.chosen


def test_a_mask_as_a_parametrization_keeps_zeros():
    layer = nn.Linear(3, 1)
    nn.utils.parametrize.register_parametrization(layer, "weight", Mask(torch.tensor([1.0, 0, 1])))
    w, apply = models.ravel(layer)
    slope = grad(lambda w: apply(w, torch.ones(2, 3)).sum())(w)
    assert {*slope.tolist()} == {0.0, 2.0}


def test_ravel_takes_dropout_of_zero_and_norms_without_statistics():
    module = nn.Sequential(
        nn.Linear(2, 2), nn.Dropout(0.0), nn.BatchNorm1d(2, track_running_stats=False)
    )
    w0, apply = models.ravel(module)
    assert apply(w0, torch.randn(4, 2, generator=generator())).shape == (4, 2)
