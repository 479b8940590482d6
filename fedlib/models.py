"""Modules as functions of one parameter vector, and some networks."""

import copy
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TypeGuard

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.func import functional_call

from fedlib import checks
from fedlib.checks import Count, Rng
from fedlib.shapes import AnyTensor, Vector, WholeNumber

#: The integers with as many bytes as a float, by the number of bytes.
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class ModuleFunction:
    """A module as a function of its inputs and of its trainable parameters, one vector `w [d]`.

    Frozen parameters and buffers keep their values. The function is pure, works under `vmap` and
    `grad`, and takes its dtype and device from `w`, which the inputs must match. It raises
    ValueError if `w` is not a vector of length d.

    `dropout` names the layers with dropout. Their masks are a hash of `coin`, a whole number that
    `run` draws, and of the row's place. Without it they are a hash of `w`, the row and its place,
    so they change whenever the model changes, even by rounding.
    """

    module: nn.Module
    shapes: dict[str, torch.Size]
    constants: dict[str, AnyTensor]
    dropout: tuple[str, ...] = ()
    copies: "ThreadCopies" = field(
        default_factory=lambda: ThreadCopies(), init=False, repr=False, compare=False
    )

    def __call__(
        self,
        w: Vector,
        *inputs: AnyTensor,
        train: bool = True,
        coin: WholeNumber | None = None,
    ) -> AnyTensor:
        """The module's output; dropout is active only if `train`."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        checks.vector("apply", "w", w, sum(sizes))
        values = {}
        vectors = torch.split(w, sizes)
        for name, entries in zip(self.shapes, vectors, strict=True):
            shape = self.shapes[name]
            values[name] = entries.view(shape)
        for name, constant in self.constants.items():
            dtype = constant.dtype
            if constant.is_floating_point():
                dtype = w.dtype
            values[name] = constant.to(w.device, dtype)
        if self.dropout and train:
            rows = inputs[0]
            if coin is None:
                coins = row_hashes(w, rows)
            else:
                position = torch.arange(len(rows), device=coin.device)
                coins = mixed(coin + position * 7_919)
            for number, name in enumerate(self.dropout):
                values[f"{name}.coins"] = mixed(coins + number)
        module = self.copies.of(self.module)
        result: Tensor = functional_call(module, values, inputs)
        return result

    def changed_buffers(self, *inputs: AnyTensor) -> list[str]:
        """The buffers that the module itself changes in a call, which this function undoes."""
        module = copy.deepcopy(self.module)
        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        if not buffers:
            return []
        with torch.no_grad():
            module(*inputs)
        changed = []
        for name, buffer in module.named_buffers():
            original = buffers[name].nan_to_num()
            if not torch.equal(buffer.nan_to_num(), original):
                changed.append(name)
        return changed


class ThreadCopies(threading.local):
    """Each thread's copy of a module, since a call exchanges the module's tensors while it lasts.

    The copies share the module's tensors, which no call changes.
    """

    copied: nn.Module | None = None

    def of(self, module: nn.Module) -> nn.Module:
        """The copy of the module for the current thread."""
        if self.copied is None:
            tensors = chain(module.parameters(), module.buffers())
            shared = {id(tensor): tensor for tensor in tensors}
            self.copied = copy.deepcopy(module, shared)
        return self.copied

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """A pickled function makes its copies anew."""
        return type(self), ()


def ravel(module: nn.Module) -> tuple[Vector, ModuleFunction]:
    """A module as a vector `w0 [d]` and a function `apply(w, *inputs)` of any parameters w.

    `w0` is a detached copy of the trainable parameters in the order of `module.named_parameters()`.
    Frozen parameters (`requires_grad_(False)`), buffers and layers in eval mode stay as they are.
    For `nn.Dropout` in training mode see `ModuleFunction`. Raises TypeError for an argument that is
    not a module. Raises ValueError if there are no trainable parameters, or if they have several
    dtypes or are not initialized; for batch norm and spectral norm in training mode, whose
    statistics no round carries; for gradient hooks and for weights that a hook computes (pruning);
    and for dropout of whole channels or inside attention or a recurrent layer.
    """
    checks.arguments(ravel, locals())
    _check_pure(module)
    try:
        module = copy.deepcopy(module)
    except Exception as error:
        line, _, _ = str(error).partition("\n")
        sentence, _, _ = line.partition(". ")
        reason = sentence.rstrip(".")
        remedy = "compute tensors from its parameters in forward, and keep no others"
        _require(False, "be copied by copy.deepcopy", reason, remedy)
        raise
    dropout = {}
    for name, layer in module.named_modules():
        if _drops(layer):
            dropout[name] = HashedDropout(layer.p)
    for name, hashed in dropout.items():
        parent, _, attribute = name.rpartition(".")
        setattr(module.get_submodule(parent), attribute, hashed)
    shapes = {}
    entries = []
    constants = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            shapes[name] = parameter.shape
            entries.append(parameter.detach().reshape(-1))
        else:
            constants[name] = parameter.detach()
    for name, buffer in module.named_buffers():
        constants[name] = buffer.detach()
    w0 = torch.cat(entries)
    return w0, ModuleFunction(module, shapes, constants, tuple(dropout))


class HashedDropout(nn.Module):
    """Dropout whose mask is a hash of a number per row, `coins [B]`; inactive without them."""

    coins: Int[Tensor, " B"]

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.register_buffer("coins", torch.zeros(0, dtype=torch.int64))

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The layer's input `[B, ...]`: a share p becomes zero, the rest is divided by 1 - p."""
        rows = len(self.coins)
        if not rows:
            return x
        rule = f"see one of {rows} rows in each line"
        checks.require(len(x) == rows, "ravel", "dropout", rule, list(x.shape))
        size = x[0].numel()
        position = torch.arange(size, device=x.device)
        coins = self.coins.unsqueeze(1)
        bits = mixed(coins + position * 104_729)
        integers = bits >> 17 & 0xFFFFFF
        uniform = integers.to(x.dtype) / 2**24
        is_kept = uniform >= self.p
        mask = is_kept.to(x.dtype)
        kept = x * mask.view(x.shape)
        return kept / (1 - self.p)


def row_hashes(w: Vector, rows: Shaped[Tensor, "B ..."]) -> Int[Tensor, " B"]:
    """A hash `[B]` for each row, of the model, the row and its place, in whole numbers."""
    position = torch.arange(len(rows), device=rows.device)
    flat = rows.reshape(len(rows), -1)
    model_sum = _bit_sums(w.unsqueeze(0))
    row_sums = _bit_sums(flat)
    return mixed(model_sum + row_sums * 1_000_003 + position * 7_919)


def _bit_sums(x: Shaped[Tensor, "B n"]) -> Int[Tensor, " B"]:
    """The sum of each line's entries, as whole numbers of the same bits, with odd weights."""
    x = x.detach()
    if x.is_floating_point():
        x = x.contiguous().view(INTEGERS[x.itemsize])
    column = torch.arange(x.shape[1], device=x.device)
    odd = column * 2 + 1
    products = x.long() * odd
    return products.sum(1)


def mixed(x: Int[Tensor, "*b"]) -> Int[Tensor, "*b"]:
    """Scrambled 64-bit integers (the finalizer of splitmix64)."""
    x = x ^ (x >> 30)
    x = x * -4658895280553007687
    x = x ^ (x >> 27)
    x = x * -7723592293110705685
    return x ^ (x >> 31)


def float_type(module: nn.Module) -> torch.dtype:
    """The dtype of a module's first trainable parameter, in which it computes."""
    for parameter in module.parameters():
        if parameter.requires_grad:
            return parameter.dtype
    return torch.get_default_dtype()


def is_recurrent(module: nn.Module) -> bool:
    """Whether the module holds an RNN, GRU or LSTM, or a cell of one, which torch cannot map."""
    recurrent = (nn.RNNBase, nn.RNNCellBase)
    return any(isinstance(layer, recurrent) for layer in module.modules())


def linear(inputs: Count, outputs: Count) -> nn.Linear:
    """A linear map whose weights and biases start at zero."""
    checks.arguments(linear, locals())
    layer = nn.Linear(inputs, outputs)
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


def mlp(
    sizes: Sequence[Count],
    activation: Callable[[], nn.Module] = nn.ReLU,
    *,
    rng: Rng | None = None,
) -> nn.Sequential:
    """A fully connected network.

    Parameters
    ----------
    sizes : sequence of int
        The numbers of inputs, hidden units and outputs, e.g. (784, 128, 10).
    activation : class
        A class such as `nn.ReLU`, whose objects are the activations.
    rng : torch.Generator or None
        Generator that draws the start, uniform in +-1/sqrt(inputs of the layer); None for one of
        seed 0.

    Raises ValueError or TypeError for fewer than two sizes, or sizes that are not counts.
    """
    checks.arguments(mlp, locals())
    rule = "hold at least the input and the output size"
    checks.require(len(sizes) > 1, "mlp", "sizes", rule, list(sizes))
    if rng is None:
        rng = torch.Generator().manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers.append(_blank(nn.Linear, inputs, outputs))
        layers.append(activation())
    network = nn.Sequential(*layers[:-1])
    return _started(network, rng)


def picture_cnn(
    rng: Rng,
    *,
    channels: Count = 1,
    side: Count = 28,
    classes: Count = 10,
) -> nn.Sequential:
    """Two convolutions of 5 x 5 with max-pooling of 2 and ReLU, then linear maps; 184,586 weights.

    This is the CNN for pictures of the FedFW experiments, as in the authors' code: convolutions
    `channels`-32-64, linear 1024-128 with ReLU and 128-`classes` (1024 for a side of 28). Weights
    and biases start uniform in +-1/sqrt(inputs of a unit), drawn from `rng`. Raises ValueError or
    TypeError for counts out of range; `side` is at least 16.
    """
    checks.arguments(picture_cnn, locals())
    checks.count("picture_cnn", "side", side, low=16)
    middle_side = (side - 4) // 2
    pooled_side = (middle_side - 4) // 2
    features = 64 * pooled_side**2
    network = nn.Sequential(
        _blank(nn.Conv2d, channels, 32, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        _blank(nn.Conv2d, 32, 64, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(-3),
        _blank(nn.Linear, features, 128),
        nn.ReLU(),
        _blank(nn.Linear, 128, classes),
    )
    return _started(network, rng)


def _blank(layer: type[nn.Module], *sizes: int) -> nn.Module:
    """A layer whose parameters are not drawn, since torch would use the global generator."""
    with torch.device("meta"):
        empty = layer(*sizes)
    return empty.to_empty(device="cpu")


def _started(module: nn.Sequential, rng: torch.Generator) -> nn.Sequential:
    """Draw the module's weights and biases uniformly in +-1/sqrt(inputs of a unit)."""
    with torch.no_grad():
        for layer in module:
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                inputs = layer.weight[0].numel()
                bound = 1 / math.sqrt(inputs)
                for parameter in layer.parameters():
                    parameter.uniform_(-bound, bound, generator=rng)
    return module


def _drops(layer: nn.Module) -> TypeGuard[nn.Dropout]:
    """Whether a layer drops single units at random."""
    return type(layer) is nn.Dropout and layer.training and 0 < layer.p < 1


def _check_pure(module: nn.Module) -> None:
    """Raise ValueError if the module is not a function of its parameters and inputs alone."""
    for name, layer in module.named_modules():
        label = type(layer).__name__
        if name:
            label += f" ({name})"
        parameters = list(layer.parameters(recurse=False))
        lazy = any(map(nn.parameter.is_lazy, parameters))
        _require(not lazy, "be initialized: call it once on some inputs", label)
        meta = any(parameter.is_meta for parameter in parameters)
        _require(not meta, "have values", f"{label} on the meta device", "see to_empty")
        if layer.training:
            _check_training(layer, label)
        _check_hooks(layer, label)
        _check_embedding(layer, label)
    names = set()
    for parameter in module.parameters():
        if parameter.requires_grad:
            names.add(str(parameter.dtype))
    dtypes = sorted(names)
    remedy = "call requires_grad_() on those to train"
    _require(dtypes, "have trainable parameters", "none", remedy)
    rule = "have trainable parameters of one dtype"
    _require(len(dtypes) == 1, rule, " and ".join(dtypes), "see requires_grad_")
    real = float_type(module).is_floating_point
    remedy = "hold real and imaginary parts, see torch.view_as_real"
    _require(real, "have parameters of real numbers", dtypes[0], remedy)
    bad = []
    for name, parameter in module.named_parameters():
        if not parameter.isfinite().all():
            bad.append(name)
    fault = f"NaN or infinity in {', '.join(bad)}"
    _require(not bad, "have finite parameters", fault)


def _require(
    fits: object,
    rule: str,
    value: str,
    remedy: str = "",
) -> None:
    """Raise ValueError unless the module of `ravel` fits."""
    checks.require(fits, "ravel", "module", rule, value, remedy)


def _check_training(layer: nn.Module, label: str) -> None:
    """Raise ValueError if a layer in training mode is random or changes its own statistics."""
    option = "dropout"  # of attention and recurrent layers
    if isinstance(layer, nn.modules.dropout._DropoutNd):
        option = "p"
    share = getattr(layer, option, 0)
    drops = isinstance(share, (int, float)) and share > 0
    random = drops and not _drops(layer)
    _require(not isinstance(layer, nn.RReLU), "be deterministic", label, "take nn.LeakyReLU")
    remedy = "leave it out, or call module.eval()"
    _require(not random, "be deterministic", f"dropout in {label}", remedy)
    is_norm = isinstance(layer, nn.modules.batchnorm._NormBase)
    moving = is_norm and layer.track_running_stats
    remedy = "take nn.GroupNorm, or call module.eval()"
    _require(not moving, "have no running statistics", label, remedy)
    spectral = isinstance(layer, nn.utils.parametrizations._SpectralNorm)
    rule = "have no spectral norm that is being estimated"
    _require(not spectral, rule, label, "call module.eval()")


#: What replaces the old norms of weights, by the names of their hooks.
NEWER_NORMS = {
    "WeightNorm": "take torch.nn.utils.parametrizations.weight_norm",
    "SpectralNorm": "take torch.nn.utils.parametrizations.spectral_norm",
}


def _check_hooks(layer: nn.Module, label: str) -> None:
    """Raise ValueError for hooks that `torch.func` does not call or that change the module."""
    names = []
    for name, parameter in layer.named_parameters(recurse=False):
        later_hooks = getattr(parameter, "_post_accumulate_grad_hooks", None)
        hooks = parameter._backward_hooks or later_hooks
        if parameter.requires_grad and hooks:
            names.append(name)
    rule = "have no gradient hooks, which torch.func does not call"
    mask = "multiply by a mask in a torch.nn.utils.parametrize parametrization"
    listed = ", ".join(names)
    _require(not names, rule, f"{listed} of {label}", mask)
    backward = layer._backward_hooks or layer._backward_pre_hooks
    _require(not backward, rule, label, "change gradients in a local step in its place")
    rule = "have no weights that a hook computes, as pruning and the old weight_norm do"
    for hook in layer._forward_pre_hooks.values():
        hook_type = type(hook)
        computes = hook_type.__module__.startswith("torch.nn.utils")
        remedy = NEWER_NORMS.get(hook_type.__name__, mask)
        _require(not computes, rule, label, remedy)


def _check_embedding(layer: nn.Module, label: str) -> None:
    """Raise ValueError for options of embeddings that are no function of the parameters."""
    if not isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        return
    _require(not layer.sparse, "have dense gradients", label, "leave out sparse=True")
    rule = "leave its weights as they are"
    _require(layer.max_norm is None, rule, label, "leave out max_norm")
    rule = "have gradients that are sums over rows"
    _require(not layer.scale_grad_by_freq, rule, label, "leave out scale_grad_by_freq")
