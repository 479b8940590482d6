"""Torch modules as functions of one vector: what any module becomes, and two networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from fedlib import checks
from fedlib.checks import Count, Rng

Apply = Callable[..., Tensor]  # apply(w, *inputs) -> the module's output


def ravel(module: nn.Module) -> tuple[Float[Tensor, " d"], Apply]:
    """A module as `(w0 [d], apply)` with `apply(w, *inputs)` the module at parameters w.

    `w0` is a detached copy of the parameters in the order of `module.named_parameters()`. `apply`
    is pure, works under `vmap` and `grad`, and takes its dtype and device from `w` (the inputs
    must agree with it); it raises ValueError if `w` is not a vector of length d.

    Raises:
        TypeError: not a module.
        ValueError: no parameters, parameters of several dtypes, dropout (random), or buffers such
            as the running statistics of batch norm (a state beside w, which no round carries).
    """
    checks.arguments(ravel, locals())
    _check_pure(module)
    named = dict(module.named_parameters())
    shapes = [p.shape for p in named.values()]
    sizes = [p.numel() for p in named.values()]

    def apply(w: Float[Tensor, " d"], *inputs: Tensor) -> Tensor:
        checks.vector("apply", "w", w, sum(sizes))
        parts = torch.split(w, sizes)
        views = {name: part.view(s) for name, part, s in zip(named, parts, shapes, strict=True)}
        result: Tensor = functional_call(module, views, inputs)
        return result

    return torch.cat([p.detach().reshape(-1) for p in named.values()]), apply


def mlp(
    sizes: Sequence[Count], activation: Callable[[], nn.Module] = nn.ReLU, *, rng: Rng | None = None
) -> nn.Sequential:
    """A fully connected network: linear maps between `sizes`, `activation` between them.

    Args:
        sizes: input, hidden and output numbers, e.g. (784, 128, 10).
        activation: makes the activation module, e.g. `nn.ReLU` or `nn.Tanh`.
        rng: draws the start, uniform in +-1/sqrt(inputs of the layer); a generator of seed 0 if
            none is given (at zero a network with hidden layers has no useful gradient).

    Raises ValueError or TypeError for fewer than two sizes, or a size that is no count.
    """
    checks.arguments(mlp, locals())
    rule = "hold the input and the output size at least"
    checks.require(len(sizes) > 1, "mlp", "sizes", rule, list(sizes))
    rng = torch.Generator().manual_seed(0) if rng is None else rng
    layers: list[nn.Module] = []
    for inside, outside in pairwise(sizes):
        layers += [_blank(nn.Linear, inside, outside), activation()]
    return _started(nn.Sequential(*layers[:-1]), rng)


def picture_cnn(
    rng: Rng, *, channels: Count = 1, side: Count = 28, classes: Count = 10
) -> nn.Sequential:
    """Two convolutions of 5 x 5 with max-pooling of 2 and ReLU, then linear maps; 184,586 numbers.

    The network for pictures of the FedFW experiments (the authors' code; the paper says CNN):
    convolutions `channels`-32-64, linear 1024-128 with ReLU and 128-`classes` (1024 for a side of
    28). Weights and biases start uniform in +-1/sqrt(inputs of a unit), drawn from `rng`.

    Raises ValueError or TypeError for counts out of range; `side` is 16 at least.
    """
    checks.arguments(picture_cnn, locals())
    checks.count("picture_cnn", "side", side, low=16)
    left = ((side - 4) // 2 - 4) // 2
    network = nn.Sequential(
        *(_blank(nn.Conv2d, channels, 32, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(_blank(nn.Conv2d, 32, 64, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(-3), _blank(nn.Linear, 64 * left**2, 128), nn.ReLU()),
        _blank(nn.Linear, 128, classes),
    )
    return _started(network, rng)


def _blank(kind: type[nn.Module], *sizes: int) -> nn.Module:
    """A layer whose numbers are not drawn, which would be from the global generator."""
    with torch.device("meta"):
        layer = kind(*sizes)
    return layer.to_empty(device="cpu")


def _started(module: nn.Sequential, rng: torch.Generator) -> nn.Sequential:
    """The module, its weights and biases uniform in +-1/sqrt(inputs of a unit)."""
    with torch.no_grad():
        for part in module:
            if isinstance(part, (nn.Conv2d, nn.Linear)):
                bound = 1 / math.sqrt(part.weight[0].numel())
                for parameter in part.parameters():
                    parameter.uniform_(-bound, bound, generator=rng)
    return module


def _check_pure(module: nn.Module) -> None:
    """Raise ValueError for what a function of the parameters cannot be."""
    for name, part in module.named_modules():
        where = f"{type(part).__name__}{f' ({name})' if name else ''}"
        layer = isinstance(part, nn.modules.dropout._DropoutNd)  # else attention, recurrent nets
        option = getattr(part, "p" if layer else "dropout", 0)
        if isinstance(option, (int, float)) and option > 0:
            raise ValueError(
                f"ravel: module must be deterministic, got dropout in {where}; "
                "leave it out or set its probability to 0."
            )
        for buffer, _ in part.named_buffers(recurse=False):
            raise ValueError(
                f"ravel: module must hold parameters only, got the buffer {buffer!r} in {where}; "
                "use nn.GroupNorm for batch norm, and compute constants in forward."
            )
    dtypes = sorted({str(p.dtype) for p in module.parameters()})
    rule = "have parameters of one dtype"
    checks.require(len(dtypes) == 1, "ravel", "module", rule, " and ".join(dtypes))
