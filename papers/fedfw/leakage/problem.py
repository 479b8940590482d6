r"""What the study of leakage attacks: smooth networks, and a client's picture as the unknown.

The LeNet without pooling is that of Zhu, Liu, Han, *Deep Leakage from Gradients*, NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fedlib import checks, data, models
from fedlib.core import Problem
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from fedlib.data import Table
from fedlib.shapes import Vector

CAP = 200.0  # dB: what a picture without any error counts as
DATA = {"digits": (16.0, 8), "mnist": (255.0, 28), "cifar10": (255.0, 16)}  # top, side
KINDS = ("mlp", "lenet")
CHANNELS = 12  # of every convolution of the LeNet
UNIFORM = 0.5  # its start, as in Zhu et al.


@dataclass(frozen=True)
class Network:
    """A smooth network for pictures `[B, channels, side, side]` with ten classes.

    Parameters
    ----------
    kind : `"mlp"`, one hidden layer of sigmoids, which starts within 1 / sqrt(inputs); `"lenet"`,
        three 5 x 5 convolutions with sigmoids, strides 2, 2, 1, no pooling, then a linear layer;
        it starts within 1 / 2.
    channels, side : of the pictures.
    hidden : of the mlp.
    """

    kind: str
    channels: int
    side: Annotated[int, checks.counted(4)]
    hidden: int = 32

    @property
    def pixels(self) -> int:
        return self.channels * self.side**2

    def module(self, rng: torch.Generator) -> nn.Sequential:
        if self.kind == "mlp":
            inner = models.mlp((self.pixels, self.hidden, 10), nn.Sigmoid, rng=rng)
            return nn.Sequential(nn.Flatten(1), *inner)
        left = ((self.side + 1) // 2 + 1) // 2
        with torch.device("meta"):  # without storage: nothing comes from the global generator
            module = nn.Sequential(
                nn.Conv2d(
                    self.channels,
                    CHANNELS,
                    5,
                    2,
                    2,
                ),
                nn.Sigmoid(),
                nn.Conv2d(CHANNELS, CHANNELS, 5, 2, 2),
                nn.Sigmoid(),
                nn.Conv2d(CHANNELS, CHANNELS, 5, 1, 2),
                nn.Sigmoid(),
                nn.Flatten(1),
                nn.Linear(CHANNELS * left**2, 10),
            )
        module = module.to_empty(device="cpu")
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.uniform_(-UNIFORM, UNIFORM, generator=rng)
        return module

    def shapes(self) -> list[tuple[int, ...]]:
        module = self.module(seeded(0, "split"))
        return [tuple(parameter.shape) for parameter in module.parameters()]

    def start(self, rng: torch.Generator) -> Vector:
        return models.ravel(self.module(rng))[0].double()

    def __call__(self, w: Vector, X: Float[Tensor, "B c s s"]) -> Tensor:
        module: Tensor = _apply(self)(w, X)
        return module


@lru_cache(maxsize=16)
def _apply(network: Network) -> Any:
    return models.ravel(network.module(seeded(0, "split")))[1]


@lru_cache(maxsize=1)
def pictures(name: str) -> Table:
    if name == "digits":
        return data.digits()
    return data.mnist("test") if name == "mnist" else data.cifar10("test", exact_only=True)


def leak_problem(seed: int, *, name: str, network: Network) -> Problem:
    """One client with one picture: here the picture is the unknown w, in [0, 1].

    The seed fixes which picture, the network's parameters and the attackers' dummies, which are the
    start w0. `metrics`: `psnr` of w against the picture in dB, at most 200, and their `cosine`.
    """
    rng = seeded(seed, "split")
    table = pictures(name)
    top, side = DATA[name]
    row = int(torch.randint(len(table.y), (1,), generator=rng))
    picture = table.X[row].double() / top
    picture = picture.unsqueeze(0) if picture.dim() == 2 else picture.movedim(-1, 0)
    edge = (picture.shape[-1] - side) // 2
    middle = slice(edge, edge + side)
    truth = picture[:, middle, middle].unsqueeze(0)
    number = torch.tensor(seed)
    start = torch.randn(truth.shape, generator=dummies(number), dtype=torch.float64)

    def losses(w: Vector, batch: Batch) -> Float[Tensor, "1"]:
        error = batch.data[0].flatten() - w
        return error.square().mean().unsqueeze(0)

    return Problem(
        name="leak_problem",
        data=(truth,),
        rows=torch.zeros(1, 1, dtype=torch.long),
        sizes=(1,),
        losses=losses,
        num_objectives=1,
        num_constraints=0,
        w0=start.flatten(),
        metrics=compared,
        heldout=(truth, table.y[row : row + 1], network.start(rng), number),
        sequential_clients=True,
        config={"name": "leak_problem", "data": name, "side": side, "split_by": "seed"},
    )


def dummies(number: Tensor) -> torch.Generator:
    return seeded(int(number), "rounds")


def compared(w: Vector, problem: Problem) -> dict[str, Tensor]:
    truth = problem.heldout[0].flatten()
    lengths = w.norm() * truth.norm()
    error = (w - truth).square().mean()
    decibels = -10 * torch.log10(error)
    return {
        "psnr": decibels.clamp(max=CAP),
        "cosine": w @ truth / lengths.clamp(min=1e-300),
    }
