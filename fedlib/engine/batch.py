"""The rounds and evaluations of one call of `run`, all its runs together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor
from torch.func import vmap
from torch.utils import _pytree as pytree

from fedlib.core.algorithm import Algorithm
from fedlib.core.federation import Federation, Sequential, Vectorized
from fedlib.core.problem import Draw, Info, Problem, check_metrics, try_losses
from fedlib.core.sampling import seeded
from fedlib.core.schedule import Schedule
from fedlib.core.trace import Trace
from fedlib.core.trees import explain_map_error, index_tree, loop_map, squeeze_map, stack_trees
from fedlib.engine.ahead import samples
from fedlib.engine.captured import captured
from fedlib.engine.checkpoint import Progress, Shape, together
from fedlib.engine.compile import Unrolled, rounds_of_a_call
from fedlib.engine.gradient import Gradient
from fedlib.engine.grid import fill, stack
from fedlib.engine.record import record
from fedlib.engine.seeds import StackedProblem, check_same_shapes, made

SMALL = 50_000  # below so many parameters a second thread makes a round slower
#: What a round's state and draw, and what metrics are of, run over: the seeds, the grid.
ROUND, METRICS = ((0, 0), (0, None)), ((0,), (0,))


class BatchedRuns:
    """The round and the evaluation of all runs of one call of `run`: recorded, or loop_map."""

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
        try_losses(self.problems[0])
        alone = self.problems[0].sequential_clients and device.type == "cpu"
        self.engine = engine or (Sequential if alone else Vectorized)
        self.template, values = stack(grid, self.problems[0].w0)
        self.hyper = {k: v.to(device) for k, v in values.items()}
        self.one = StackedProblem(self.problems, device)
        self.form, self.own, self.common = self.one.form, self.one.own, self.one.common
        drawn = [samples(self.template, p) for p in self.problems]
        self.samples = drawn[0] if len({*drawn}) == 1 else None
        self.gradient = Gradient(self.form.losses) if self.engine is Sequential else None
        self._step: Callable[..., Any] | None = None
        self._measure: Callable[..., Any] | None = None

    def start(self) -> Progress:
        """The states before round 0, `[G, S, ...]`, and a generator a seed."""
        g, s = len(self.grid), len(self.seeds)
        for algorithm in self.grid:
            states = [algorithm.init(p) for p in self.problems]
        states = states if self.own_problem else states * s
        state = pytree.tree_map(
            lambda x: x.to(self.device).expand(g, *x.shape).contiguous(), stack_trees(states)
        )
        return Progress(state, [seeded(seed, "rounds") for seed in self.seeds])

    def shape(self, rounds: int, schedule: Schedule) -> Shape:
        """What a checkpoint must look like, seen by doing one round from the start."""
        start, draw = self.example()
        state, info = self.step(start.state, draw)
        metrics = self.measure(start.state.w)
        return Shape(rounds, schedule, self.some_data(), state, metrics, info)

    def some_data(self) -> list[Float[Tensor, "n"]]:
        """Entries of all data, evenly spread, which tell them from other data."""
        return [_entries(x) for x in (*self.own, *self.common)]

    def example(self) -> tuple[Progress, Draw]:
        """The start, and the draws of round 0."""
        start = self.start()
        return start, part(self.draws(start.rngs, 1), 0)

    def draws(self, rngs: list[torch.Generator], rounds: int) -> Draw:
        """The draws of some rounds and all seeds, `[rounds, S, ...]`, on the run's device."""
        if self.samples:
            found: Draw = pytree.tree_map(self._arrived, self.samples.draws(rngs, rounds))
            return found
        problems = self.problems if self.own_problem else self.problems * len(rngs)
        draw, pairs = self.template.draw, list(zip(problems, rngs, strict=True))
        return self._together([draw(p, rng) for _ in range(rounds) for p, rng in pairs], rounds)

    def _together(self, draws: Sequence[Draw], rounds: int) -> Draw:
        # field by field: on small problems the general tree_map would cost a fifth of a round
        parts: list[Any] = [
            self._arrived(_stacked(each).view(rounds, -1, *each[0].shape))
            if isinstance(each[0], Tensor)
            else ()
            for each in zip(*draws, strict=True)
        ]
        others = zip(*(draw.others for draw in draws), strict=True)
        return Draw(*parts)._replace(others=tuple(self._together(o, rounds) for o in others))

    def _arrived(self, x: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """On the run's device; a GPU fetches it while the CPU goes on."""
        if self.device.type == "cuda":
            return x.pin_memory().to(self.device, non_blocking=True)
        return x

    def step(self, state: Any, draw: Draw) -> tuple[Any, Info]:
        """One round of every run; the state is spent, but for its model."""
        if self._step is None:
            self._step = self._batched(self._round, (state, draw), *ROUND, spent(state))
            if self.device.type == "cuda":
                self._step = captured(self._step, state, draw)
        after: tuple[Any, Info] = self._step(state, draw)
        return after

    def measure(self, w: Float[Tensor, "G S d"]) -> Info:
        """The problem's metrics of every run."""
        if self._measure is None:
            self._measure = self._batched(self._metrics, (w,), *METRICS)
        values: Info = self._measure(w)
        return values

    def _round(self, hyper: Any, own: Any, common: Any, state: Any, draw: Draw) -> Any:
        fed = self.engine(self.one.problem(own, common))
        fed.runs, fed.gradient = len(self.grid) * len(self.seeds), self.gradient
        return fill(self.template, hyper).round(fed, state, draw)

    def _metrics(self, hyper: Any, own: Any, common: Any, w: Tensor) -> Any:  # noqa: ARG002
        problem = self.one.problem(own, common)
        found = problem.metrics(w, problem)
        check_metrics(problem, found)
        return found

    def compiled(self, rounds: int, schedule: Schedule) -> Unrolled | None:
        """Rounds in compiled calls, if the run is long enough for that and a compiler is there."""
        if self.engine.sequential_clients or self.device.type != "cpu":
            return None
        now, draw = self.example()
        self._step = self._batched(self._round, (now.state, draw), *ROUND, spent(now.state))
        self._measure = self._batched(self._metrics, (now.state.w,), *METRICS)
        call = rounds_of_a_call(self._step, self._measure, rounds, schedule)
        if not call:
            return None
        over = self._over(self._round, *ROUND), self._over(self._metrics, *METRICS)
        fixed = (self.hyper, self.own, self.common)
        try:
            return Unrolled(*over, fixed, now.state, draw, call, schedule)
        except Exception as error:  # whatever the compiler, or the lack of one, says
            warnings.warn(f"run: rounds are replayed, not compiled: {error!s:.200}", stacklevel=2)
            return None

    def _over(
        self, function: Callable[..., Any], seed_dims: Any, grid_dims: Any
    ) -> Callable[..., Any]:
        """`function` over grid and seeds, by vmap or plain loops."""
        mapper = loop_map if self.engine.sequential_clients else vmap
        over_seeds, over_grid = (
            (None, 0, None, *seed_dims),
            (0 if self.hyper else None, None, None, *grid_dims),
        )
        one = (squeeze_map if len(self.seeds) == 1 else mapper)(function, in_dims=over_seeds)
        return (squeeze_map if len(self.grid) == 1 else mapper)(one, in_dims=over_grid)

    def _batched(
        self,
        function: Callable[..., Any],
        example: Any,
        seed_dims: Any,
        grid_dims: Any,
        given_up: Collection[int] = (),
    ) -> Callable[..., Any]:
        """`function` over grid and seeds, recorded unless it is loop_map."""
        both = self._over(function, seed_dims, grid_dims)
        fixed = (self.hyper, self.own, self.common)
        if self.engine.sequential_clients:
            return partial(both, *fixed)
        try:
            return record(both, *example, fixed=fixed, spent=given_up)
        except RuntimeError as error:
            if not explain_map_error(error):
                raise
            name = type(self.template).__name__
            if self.one.radii:  # an oracle that writes its radius into a tensor, say
                which = type(self.form.set).__name__
                raise ValueError(
                    f"run: the feasible sets of all seeds must be equal, {which} differs in "
                    f"{', '.join(self.one.radii)} from seed to seed; run the seeds one by one."
                ) from error
            raise ValueError(f"{name}: a round must not {explain_map_error(error)}.") from error

    def output(self, state: Any) -> Any:
        """The solutions `[S, d]` of an algorithm whose output is not its final model."""
        if not hasattr(self.template, "output"):
            return None
        return np.asarray(vmap(self.template.output)(state).double().cpu())

    def traces(
        self, now: Progress, rounds: int, schedule: Schedule, config: dict[str, Any]
    ) -> list[Trace]:
        """One Trace a grid point, on the CPU."""
        metrics, info = _curves(now.metrics), _curves(now.info)
        evaluated = np.array([*schedule.before(rounds), rounds])
        common = {k: v for k, v in config.items() if k != "algorithms"}
        ran_on = {
            "device": device_name(self.device),
            "threads": threads(self.form.dim, self.device),
            "compiled": now.compiled,  # rounds, of all
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
                state=pytree.tree_map(Tensor.cpu, index_tree(now.state, g)),
                output=self.output(index_tree(now.state, g)),
            )
            for g in range(len(self.grid))
        ]


def spent(state: Any) -> list[int]:
    """The tensors of a state that a round may write to, by number: all but the model."""
    return [i for i, x in enumerate(pytree.tree_leaves(state)) if x is not state.w]


def _entries(x: Shaped[Tensor, "..."], most: int = 1000) -> Float[Tensor, "n"]:
    """Up to 1000 entries of a tensor from its first to its last."""
    flat = x.reshape(-1)
    count = min(most, len(flat))
    places = torch.arange(count, device=x.device) * (len(flat) - 1) // max(count - 1, 1)
    return flat[places].double().cpu()


def part(draws: Draw, which: int | slice) -> Draw:
    """One round, or some, of the draws `[rounds, S, ...]` of many."""
    parts: list[Any] = [x[which] if isinstance(x, Tensor) else x for x in draws]
    return Draw(*parts)._replace(others=tuple(part(other, which) for other in draws.others))


def _stacked(draws: tuple[Shaped[Tensor, "..."], ...]) -> Shaped[Tensor, "n ..."]:
    """The draws of all seeds in one tensor."""
    try:
        return torch.stack(draws)
    except RuntimeError:
        shapes = [[*shape] for shape in dict.fromkeys(x.shape for x in draws)]
        if len(shapes) == 1:  # too little memory, say
            raise
        raise ValueError(
            f"run: the draws of all seeds must have one shape, got {shapes[:2]} (all rows of "
            "unequally many, say); run the seeds one by one."
        ) from None


def _curves(blocks: list[dict[str, Tensor]]) -> dict[str, NDArray[np.float64]]:
    """Per name `[G, S, T]` in float64."""
    return {k: x.cpu().double().numpy() for k, x in together(blocks).items()}


def threads(dim: int, device: torch.device) -> int:
    """How many threads a run takes: one for small problems on the CPU, else the caller's."""
    return 1 if device.type == "cpu" and dim < SMALL else torch.get_num_threads()


def device_name(device: torch.device) -> str:
    """`cpu`, or the GPU's model."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
