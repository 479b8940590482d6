"""Networks, and `ravel`: any module as one flat vector and a pure function of it.

Parameters are one vector `w [d]` everywhere in the library; this is the border where a module
becomes one. Constructors draw their start from a `torch.Generator`, never from the global one.
"""

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
    if not isinstance(module, nn.Module):
        raise TypeError(checks.sentence("ravel", "module", "be a torch.nn.Module", module))
    _check_pure(module)
    named = dict(module.named_parameters())
    shapes = [p.shape for p in named.values()]
    sizes = [p.numel() for p in named.values()]
    dim = sum(sizes)

    def apply(w: Float[Tensor, " d"], *inputs: Tensor) -> Tensor:
        checks.instance("apply", "w", w, Tensor)
        if w.shape != (dim,):
            raise ValueError(f"apply: w must have shape [{dim}], got {list(w.shape)}.")
        parts = torch.split(w, sizes)
        views = {name: part.view(s) for name, part, s in zip(named, parts, shapes, strict=True)}
        result: Tensor = functional_call(module, views, inputs)
        return result

    return torch.cat([p.detach().reshape(-1) for p in named.values()]), apply


def linear(in_: Count, out: Count, bias: bool = True, *, rng: Rng | None = None) -> nn.Linear:
    """A linear map from `in_` to `out` numbers, starting at zero, or at random with `rng`.

    The random start is uniform in +-1/sqrt(in_). With softmax cross-entropy it is multinomial
    logistic regression, which is convex: zero is a good start there.
    """
    checks.arguments(linear, locals())
    # made without storage first: its own initialization would draw from the global generator
    layer = nn.Linear(in_, out, bias=bias, device="meta").to_empty(device="cpu")
    bound = 0.0 if rng is None else 1 / math.sqrt(in_)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-bound, bound, generator=rng) if bound else parameter.zero_()
    return layer


def mlp(
    sizes: Sequence[Count], activation: Callable[[], nn.Module] = nn.ReLU, *, rng: Rng | None = None
) -> nn.Sequential:
    """A fully connected network: linear maps between `sizes`, `activation` between them.

    Args:
        sizes: input, hidden and output numbers, e.g. (784, 128, 10).
        activation: makes the activation module, e.g. `nn.ReLU` or `nn.Tanh`.
        rng: draws the start, uniform in +-1/sqrt(inputs of the layer); a generator of seed 0 if
            none is given (at zero a network with hidden layers has no useful gradient).

    Raises:
        ValueError: fewer than two sizes, or a size below 1.
        TypeError: a size that is no whole number, or an activation that makes no module.
    """
    checks.value("mlp", "sizes", sizes, Sequence)
    checks.value("mlp", "rng", rng, Rng | None)
    if len(sizes) < 2:
        rule = "hold the input and the output size at least"
        raise ValueError(checks.sentence("mlp", "sizes", rule, list(sizes)))
    for size in sizes:
        checks.count("mlp", "sizes", size)
    rng = torch.Generator().manual_seed(0) if rng is None else rng
    layers: list[nn.Module] = []
    for inside, outside in pairwise(sizes):
        layers += [linear(inside, outside, rng=rng), _activation(activation)]
    return nn.Sequential(*layers[:-1])


def _activation(make: Callable[[], nn.Module]) -> nn.Module:
    made = make() if callable(make) and not isinstance(make, nn.Module) else None
    if not isinstance(made, nn.Module):
        rule = "be a class or function that makes a module, such as nn.ReLU"
        raise TypeError(checks.sentence("mlp", "activation", rule, make))
    return made


def _check_pure(module: nn.Module) -> None:
    for name, part in module.named_modules():
        where = f"{type(part).__name__}{f' ({name})' if name else ''}"
        if _dropout(part) > 0:
            raise ValueError(
                f"ravel: module must be deterministic, got dropout in {where}; "
                "leave it out or set its probability to 0."
            )
        for buffer, _ in part.named_buffers(recurse=False):
            raise ValueError(
                f"ravel: module must hold parameters only, got the buffer {buffer!r} in {where}; "
                "use nn.GroupNorm for batch norm, and compute constants in forward."
            )
    dtypes = {p.dtype for p in module.parameters()}
    if len(dtypes) != 1:
        got = " and ".join(sorted(map(str, dtypes))) or "no parameter"
        raise ValueError(f"ravel: module must have parameters of one dtype, got {got}.")


def _dropout(part: nn.Module) -> float:
    """Probability of dropout: of a dropout layer, or the option of attention and recurrent nets."""
    if isinstance(part, nn.modules.dropout._DropoutNd):
        return part.p
    option = getattr(part, "dropout", 0.0)
    return float(option) if isinstance(option, (int, float)) else 0.0
