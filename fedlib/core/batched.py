"""The batched rounds and evaluations of one call of `run`, and the walk through them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor
from torch.func import vmap
from torch.utils import _pytree as pytree
from tqdm import tqdm

from fedlib.core.checkpoint import Progress, Saver, Shape
from fedlib.core.federation import Federation, Sequential, Vectorized
from fedlib.core.grid import fill, stack
from fedlib.core.mapping import fault, looped, only, stacked, take
from fedlib.core.problem_checks import check_metrics, try_functions
from fedlib.core.protocols import Algorithm
from fedlib.core.record import record
from fedlib.core.sampling import seeded
from fedlib.core.seeds import OneForAll, check_same_shapes, made
from fedlib.core.trace import Trace
from fedlib.core.types import Draw, Info, Problem

CHUNK = 50  # most rounds between two looks at the state (finite? checkpoint due?)
SHORT = 5.0  # seconds: while a chunk takes less, the next one is twice as long
SMALL = 50_000  # below so many parameters a second thread makes a round slower


class Diverged(FloatingPointError):
    """A state is no longer finite; `state`, `round` and `seed` say where it last was.

    >>> from fedlib import FedAvg, problems, run
    >>> problem = problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)
    >>> run(FedAvg(1e9, 2, 4), problem, rounds=9)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    Diverged: FedAvg: the model is not finite after round 2
    """

    def __init__(self, text: str, state: Any, round_: int, seed: int) -> None:
        super().__init__(text)
        self.state, self.round, self.seed = state, round_, seed


class Batched:
    """The batched round and evaluation of one call of `run`, and the walk through the rounds."""

    def __init__(
        self,
        grid: list[Algorithm],
        problem: Problem | Callable[[int], Problem],
        seeds: tuple[int, ...],
        device: torch.device,
        engine: type[Federation] | None,
    ) -> None:
        self.grid, self.seeds, self.device = grid, seeds, device
        self.own_problem = not isinstance(problem, Problem)
        self.problems = (
            [problem] if isinstance(problem, Problem) else [made(problem, seed) for seed in seeds]
        )
        check_same_shapes(self.problems, seeds)
        try_functions(self.problems[0])
        alone = self.problems[0].one_by_one and device.type == "cpu"
        self.engine = engine or (Sequential if alone else Vectorized)
        self.template, values = stack(grid, self.problems[0].w0)
        self.hyper = {k: v.to(device) for k, v in values.items()}
        self.one = OneForAll(self.problems, device)
        self.form, self.own, self.common = self.one.form, self.one.own, self.one.common
        self._step: Callable[..., Any] | None = None
        self._measure: Callable[..., Any] | None = None

    def start(self) -> Progress:
        """The states before round 0, `[G, S, ...]`, and a generator a seed."""
        g, s = len(self.grid), len(self.seeds)
        for algorithm in self.grid:
            states = [algorithm.init(p) for p in self.problems]
        states = states if self.own_problem else states * s
        state = pytree.tree_map(
            lambda x: x.to(self.device).expand(g, *x.shape).contiguous(), stacked(states)
        )
        return Progress(state, [seeded(seed, "rounds") for seed in self.seeds])

    def shape(self, rounds: int, every: int) -> Shape:
        """What a checkpoint must look like, seen by doing one round from the start."""
        start = self.start()
        state, info = self.step(start.state, self.draws(start.rngs))
        metrics = self.measure(start.state.w)
        return Shape(rounds, every, self.some_data(), state, metrics, info)

    def some_data(self) -> list[Float[Tensor, "n"]]:
        """Entries of all data, evenly spread, which tell them from other data."""
        return [_entries(x) for x in (*self.own, *self.common)]

    def draws(self, rngs: list[torch.Generator]) -> Draw:
        """One round's draws of all seeds, `[S, ...]`, on the run's device."""
        problems = self.problems if self.own_problem else self.problems * len(rngs)
        each = [self.template.draw(p, rng) for p, rng in zip(problems, rngs, strict=True)]
        return self._together(each)

    def _together(self, draws: Sequence[Draw]) -> Draw:
        # field by field: on small problems the general tree_map would cost a fifth of a round
        parts: list[Any] = [
            torch.stack(part).to(self.device) if isinstance(part[0], Tensor) else ()
            for part in zip(*draws, strict=True)
        ]
        others = zip(*(draw.others for draw in draws), strict=True)
        return Draw(*parts)._replace(others=tuple(map(self._together, others)))

    def step(self, state: Any, draw: Draw) -> tuple[Any, Info]:
        """One round of every run; the state is spent, but for its model."""
        if self._step is None:
            spent = [i for i, x in enumerate(pytree.tree_leaves(state)) if x is not state.w]
            self._step = self._batched(self._round, (state, draw), (0, 0), (0, None), spent)
        after: tuple[Any, Info] = self._step(state, draw)
        return after

    def measure(self, w: Float[Tensor, "G S d"]) -> Info:
        """The problem's metrics of every run."""
        if self._measure is None:
            self._measure = self._batched(self._metrics, (w,), (0,), (0,))
        values: Info = self._measure(w)
        return values

    def _round(self, hyper: Any, own: Any, common: Any, state: Any, draw: Draw) -> Any:
        fed = self.engine(self.one.problem(own, common))
        return fill(self.template, hyper).round(fed, state, draw)

    def _metrics(self, hyper: Any, own: Any, common: Any, w: Tensor) -> Any:  # noqa: ARG002
        problem = self.one.problem(own, common)
        found = problem.metrics(w, problem)
        check_metrics(problem, found)
        return found

    def _batched(
        self,
        function: Callable[..., Any],
        example: Any,
        seed_dims: Any,
        grid_dims: Any,
        spent: Sequence[int] = (),
    ) -> Callable[..., Any]:
        """`function` over grid and seeds: recorded vmaps, or plain loops."""
        mapper = looped if self.engine.one_by_one else vmap
        over_seeds, over_grid = (
            (None, 0, None, *seed_dims),
            (0 if self.hyper else None, None, None, *grid_dims),
        )
        one = (only if len(self.seeds) == 1 else mapper)(function, in_dims=over_seeds)
        both = (only if len(self.grid) == 1 else mapper)(one, in_dims=over_grid)
        fixed = (self.hyper, self.own, self.common)
        if self.engine.one_by_one:
            return partial(both, *fixed)
        try:
            return record(both, *example, fixed=fixed, spent=spent)
        except RuntimeError as error:
            if not fault(error):
                raise
            name = type(self.template).__name__
            if self.one.radii:  # the simplex's oracle, say, writes its radius into a tensor
                which = type(self.form.set).__name__
                raise ValueError(
                    f"run: the feasible sets of all seeds must be equal, {which} differs in "
                    f"{', '.join(self.one.radii)} from seed to seed; run the seeds one by one."
                ) from error
            raise ValueError(f"{name}: a round must not {fault(error)}.") from error

    def go(self, now: Progress, rounds: int, every: int, show: bool, saver: Saver) -> Progress:
        """All remaining rounds."""
        name, length = type(self.template).__name__, 1
        with tqdm(total=rounds, initial=now.round, desc=name, delay=3, disable=not show) as bar:
            while now.round < rounds:
                began = time.perf_counter()
                before, first = copied(now.state), now.round
                last = min(first + length, rounds)
                draws = [self.draws(now.rngs) for _ in range(first, last)]
                for draw in draws:
                    if now.round % every == 0:
                        now.metrics.append(self.measure(now.state.w))
                    now.state, info = self.step(now.state, draw)
                    now.info.append(info)
                    now.round += 1
                if not torch.isfinite(now.state.w).all():
                    self._say_where(before, draws, first)
                took = time.perf_counter() - began
                if took < SHORT:
                    length = min(2 * length, CHUNK)
                now.seconds += took
                saver.save(now, self.some_data, done=now.round == rounds)
                bar.update(last - first)
        now.metrics.append(self.measure(now.state.w))
        return now

    def output(self, state: Any) -> Any:
        """The solutions `[S, d]` of an algorithm whose output is not its final model."""
        if not hasattr(self.template, "output"):
            return None
        return np.asarray(vmap(self.template.output)(state).double().cpu())

    def _say_where(self, state: Any, draws: list[Draw], first: int) -> None:
        """Repeat the chunk round by round, and raise at the first state that is not finite."""
        for t, draw in enumerate(draws, start=first):
            after, _ = self.step(copied(state), draw)
            bad = ~torch.isfinite(after.w).flatten(2).all(-1)  # [G, S]
            if bad.any():
                g, s = (int(i) for i in bad.nonzero()[0])
                name = type(self.template).__name__
                raise Diverged(
                    f"{name}: the model is not finite after round {t} (seed {self.seeds[s]}, "
                    f"{self.grid[g]!r}); the last finite state is in error.state; "
                    "try a smaller lr.",
                    take(state, (g, s)),
                    t,
                    self.seeds[s],
                )
            state = after

    def traces(self, now: Progress, rounds: int, every: int, config: dict[str, Any]) -> list[Trace]:
        """One Trace a grid point, on the CPU."""
        metrics, info = _curves(now.metrics), _curves(now.info)
        evaluated = np.array([*range(0, rounds, every), rounds])
        common = {k: v for k, v in config.items() if k != "algorithms"}
        ran_on = {
            "device": device_name(self.device),
            "threads": threads(self.form.dim, self.device),
            "wall_s": now.seconds / len(self.grid),
        }
        return [
            Trace(
                metrics={k: v[g] for k, v in metrics.items()},
                info={k: v[g] for k, v in info.items()},
                rounds=evaluated,
                seeds=self.seeds,
                config={"algorithm": config["algorithms"][g], **common},
                provenance=ran_on,
                state=pytree.tree_map(Tensor.cpu, take(now.state, g)),
                output=self.output(take(now.state, g)),
            )
            for g in range(len(self.grid))
        ]


def copied(state: Any) -> Any:
    """The state in memory of its own."""
    return pytree.tree_map(torch.clone, state)


def _entries(x: Shaped[Tensor, "..."], most: int = 1000) -> Float[Tensor, "n"]:
    """Up to 1000 entries of a tensor from its first to its last."""
    flat = x.reshape(-1)
    count = min(most, len(flat))
    places = torch.arange(count, device=x.device) * (len(flat) - 1) // max(count - 1, 1)
    return flat[places].double().cpu()


def _curves(steps: list[dict[str, Tensor]]) -> dict[str, NDArray[np.float64]]:
    """Per name `[G, S, T]` in float64."""
    return {k: torch.stack([s[k] for s in steps], -1).cpu().double().numpy() for k in steps[0]}


def threads(dim: int, device: torch.device) -> int:
    """How many threads a run takes: one for small problems on the CPU, else the caller's."""
    return 1 if device.type == "cpu" and dim < SMALL else torch.get_num_threads()


def device_name(device: torch.device) -> str:
    """`cpu`, or the GPU's model."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
