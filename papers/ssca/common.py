"""What the SSCA studies share: the problem by samples and by features, methods, step sizes."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import data
from fedlib.algorithms.constrained_ssca import ConstrainedSSCA, ConstrainedVerticalSSCA
from fedlib.algorithms.minibatch_sgd import MiniBatchSGD, VerticalSGD
from fedlib.algorithms.ssca import SSCA, VerticalSSCA
from fedlib.checks import Count, Seed
from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from fedlib.core.problem import Batch
from fedlib.steps import PowerLaw
from fedlib.vertical import VerticalProblem
from papers.kit.study import Params
from papers.ssca.network import swish_network, vertical_network

SPLITS = ("samples", "features")
NUMBERS = {"samples": (1, 2), "features": (3, 4)}  # the algorithms of a split: plain, constrained
CLIENTS = 10  # I: features are batched as the samples of so many clients together
TAU = 0.1
PENALTY = 1e5  # c
RIDGE = 1e-5  # lambda, which the paper does not name
LEVELS = (0.4, 0.6)  # U, which the paper does not name
LATER = 0.05  # by so much gamma's exponent exceeds rho's
SCALES = {"mnist": 255.0, "digits": 16.0}  # the largest value of a pixel
WIDER = 6**0.5  # He's start is uniform, within +-sqrt(6 / inputs) of a layer
CHUNK = 2000  # rows at a time
HELD = 360  # scikit-learn's digits that are kept for testing


class StepSizes(dict[int, tuple[PowerLaw, PowerLaw]]):
    """rho and gamma by the batch; ValueError for one for which the paper prints none."""

    def __missing__(self, batch: int) -> tuple[PowerLaw, PowerLaw]:
        have = ", ".join(map(str, self))
        raise ValueError(
            f"ssca: batch must be one of {have}, for which the paper prints steps, got {batch}."
        )


def printed_steps(a1: float, a2: float, exponent: float) -> tuple[PowerLaw, PowerLaw]:
    """Rho and gamma from the numbers that the paper prints."""
    return PowerLaw(a1, exponent), PowerLaw(a2, exponent + LATER)


#: Of the sample-based algorithms, by a client's batch (section VI of the paper).
STEPS = StepSizes(
    {
        1: printed_steps(0.4, 0.4, 0.4),
        10: printed_steps(0.6, 0.9, 0.3),
        100: printed_steps(0.9, 0.9, 0.3),
    }
)

#: What all these studies let one choose, as `parameters` takes it.
TASK: dict[str, tuple[Any, ...]] = {
    "data": ("mnist, or digits: the 8 x 8 pictures of scikit-learn", "mnist", "digits"),
    "clients": ("clients; samples and features are divided evenly", 10, 4),
    "hidden": ("hidden cells J", 128, 16),
    "evaluate": ("training pictures on which the cost is computed", 10_000, 1_000),
}


@lru_cache(maxsize=2)
def tables(name: str) -> tuple[data.Table, data.Table]:
    """Training and test pictures, one a row; all seeds share these very tensors.

    Of scikit-learn's digits, which have no test pictures of their own, the last ones are those.
    """
    if name == "mnist":
        train = data.mnist("train")
        test = data.mnist("test")
        return flat(train), flat(test)
    table = flat(data.digits())
    return slice_table(table, slice(-HELD)), slice_table(table, slice(-HELD, None))


def flat(table: data.Table) -> data.Table:
    """The same rows with their pixels in one line."""
    return replace(table, X=table.X.flatten(1))


def slice_table(table: data.Table, rows: slice) -> data.Table:
    return replace(table, X=table.X[rows], y=table.y[rows])


@lru_cache(maxsize=64)
def digits_problem(
    seed: Seed,
    *,
    data: str,
    clients: Count,
    hidden: Count,
    evaluate: Count,
    wide: bool = False,
) -> Problem:
    """The network of the paper's example, samples split by the seed; `wide`: in float64."""
    train, test = tables(data)
    return swish_network(
        train,
        test,
        clients=clients,
        hidden=hidden,
        seed=seed,
        evaluate=evaluate,
        scale=SCALES[data],
        dtype=torch.float64 if wide else torch.float32,
        config={"data": data},
    )


@lru_cache(maxsize=64)
def vertical_problem(
    seed: Seed,
    *,
    data: str,
    clients: Count,
    hidden: Count,
    evaluate: Count,
    wide: bool = False,
) -> VerticalProblem:
    """The same with features split into blocks: the same start, pictures and metrics."""
    network = digits_problem(
        seed,
        data=data,
        clients=clients,
        hidden=hidden,
        evaluate=evaluate,
        wide=wide,
    )
    return vertical_network(network, clients=clients, scale=SCALES[data])


#: Split -> the maker of its problem.
PROBLEMS: dict[str, Callable[..., Problem]] = {
    "samples": digits_problem,
    "features": vertical_problem,
}


@renamed_from("papers.ssca.convergence.he_problem")
@lru_cache(maxsize=64)
def he_problem(seed: int, *, split: str, **task: Any) -> Problem:
    """The problem of a split, its start wider: what the paper may have meant, or not."""
    usual = PROBLEMS[split](seed, **task)
    config = {**usual.config, "start": "He, uniform"}
    return replace(usual, w0=WIDER * usual.w0, config=config)


def task(p: Params) -> dict[str, Any]:
    """The arguments of `digits_problem` and of `vertical_problem` among a study's parameters."""
    return {name: p[name] for name in TASK}


def problem_of(p: Params, split: str, start: str = "usual") -> Callable[[int], Problem]:
    """The problem of a split by seed, from the usual start or from He's."""
    if start == "he":
        return partial(he_problem, split=split, **task(p))
    return partial(PROBLEMS[split], **task(p))


def over_all(
    problem: Problem, value: Callable[[Batch], Float[Tensor, "*n"]], start: Float[Tensor, "*n"]
) -> Float[Tensor, "*n"]:
    """A start plus the mean over all training pictures of all clients, `CHUNK` at a time."""
    rows = problem.rows.flatten()
    total = start
    for chunk in torch.split(rows, CHUNK):
        share = torch.full_like(chunk, 1 / len(rows), dtype=problem.w0.dtype)
        total = total + value(Batch(tuple(x[chunk] for x in problem.data), share))
    return total


def rows(split: str, batch: int, clients: int) -> int:
    """The rows of one draw: a client's batch, or, over features, that of all clients together."""
    return batch if split == "samples" else clients * batch


def shared(split: str, batch: int, clients: int) -> dict[str, Any]:
    """The paper's tau and step sizes for the batch of a client of the sample-based algorithms."""
    rho, gamma = STEPS[batch]
    return {"tau": TAU, "rho": rho, "gamma": gamma, "batch_size": rows(split, batch, clients)}


def ssca(
    split: str,
    batch: int,
    *,
    clients: int = CLIENTS,
    **changes: Any,
) -> SSCA | VerticalSSCA:
    """Algorithm 1 (samples) or 3 (features) with the paper's step sizes, but for `changes`."""
    settings = {**shared(split, batch, clients), "ridge": RIDGE, **changes}
    return SSCA(**settings) if split == "samples" else VerticalSSCA(**settings)


def constrained(
    split: str,
    batch: int,
    level: float,
    *,
    clients: int = CLIENTS,
    **changes: Any,
) -> ConstrainedSSCA | ConstrainedVerticalSSCA:
    """Algorithm 2 or 4: the smallest |w|^2 whose cost is at most `level`; the rest as `ssca`."""
    settings = {**shared(split, batch, clients), "penalty": PENALTY, "levels": float(level)}
    # growth is whole: `store.groups` tries 0.5 for every float, and growth is at least 1
    settings |= {"objective": "norm", "growth": 1, **changes}
    return (ConstrainedSSCA if split == "samples" else ConstrainedVerticalSSCA)(**settings)


def sgd(
    split: str,
    batch: int,
    steps: int,
    lr: PowerLaw,
    *,
    clients: int = CLIENTS,
) -> MiniBatchSGD | VerticalSGD:
    """The baseline with `steps` local steps a round, which over features can only be one."""
    size = rows(split, batch, clients)
    if split == "samples":
        return MiniBatchSGD(lr=lr, local_steps=steps, batch_size=size, ridge=RIDGE)
    return VerticalSGD(lr=lr, batch_size=size, ridge=RIDGE)
