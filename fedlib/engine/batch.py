"""The rounds and evaluations of all runs in one call of `run`: seeds and grid side by side."""

import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor
from torch.func import vmap
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.algorithm import Algorithm
from fedlib.core.federation import Federation, Sequential, Vectorized, clients_at_once
from fedlib.core.problem import Draw, Info, Problem, check_metrics, try_losses
from fedlib.core.sampling import draw_many, draw_with_coin, seeded
from fedlib.core.trace import Trace
from fedlib.core.trees import explain_map_error, index_tree, loop_map, squeeze_map, stack_trees
from fedlib.engine.capture import CapturedGradient, capture
from fedlib.engine.checkpoint import Progress, join_blocks
from fedlib.engine.compile import SHORTER, CompiledRounds, rounds_per_call
from fedlib.engine.identity import identify
from fedlib.engine.kernels import product_library
from fedlib.engine.memories import (
    attach_memories,
    has_changes,
    is_large,
    name_changes,
    write_rows,
)
from fedlib.engine.memory import keep_freed_memory
from fedlib.engine.randomness import draws_numbers
from fedlib.engine.schedules import Schedules
from fedlib.engine.stack import StackedProblem, change_unchecked, check_same_shapes, fill, stack
from fedlib.engine.surroundings import without_inference

SMALL = 50_000  # parameters; below this number a second thread makes a round slower
CAPTURE = 200  # rounds; shorter runs are not captured, since capturing costs some tens of rounds


class BatchedRuns:
    """The round and the evaluation of all runs together; `run` has checked the arguments."""

    def __init__(
        self,
        grid: list[Algorithm],
        problem: Problem | Callable[[int], Problem],
        seeds: tuple[int, ...],
        device: torch.device,
        engine: type[Federation] | None,
        schedules: Mapping[str, Callable[[int], float]] = types.MappingProxyType({}),
    ) -> None:
        keep_freed_memory()
        self.grid, self.seeds, self.device = grid, seeds, device
        self.problems = (
            [problem] * len(seeds)
            if isinstance(problem, Problem)
            else [make_problem(problem, seed) for seed in seeds]
        )
        plain = {id(p): without_inference(p) for p in self.problems}
        self.problems = [plain[id(p)] for p in self.problems]
        check_same_shapes(self.problems, seeds)
        try_losses(self.problems[0])
        alone = self.problems[0].sequential_clients and device.type == "cpu"
        self.engine = engine or (Sequential if alone else Vectorized)
        self.template, values = stack(grid, self.problems[0].w0)
        self.hyper = {k: v.to(device) for k, v in values.items()}
        # the grid points whose draws are made: one for all unless their draws differ
        self.drawing = [self.template]
        if values and not draws_alike(self.template, list(values), self.problems[0]):
            self.drawing = list(grid)
        self.schedules = Schedules(schedules, grid)
        for name, values_of_points in self.schedules.tensors(self.problems[0].w0).items():
            alike = draws_alike(self.template, [name], self.problems[0])
            rule = "change a field that the method's draw does not read"
            checks.require(alike, "run", "schedules", rule, name)
            self.hyper[name] = values_of_points.to(device)
        self.one = StackedProblem(self.problems, device)
        self.fixed = (self.hyper, self.one.own, self.one.common)
        tensors = [*self.one.own, *self.one.common]
        self.identity = identify(grid, self.problems[0], tensors, self.schedules.rules)
        self.gradient = (
            CapturedGradient(self.one.form.losses)
            if self.engine is Sequential and not self.one.form.dropout  # coins are no arguments
            else None
        )
        # grouping clients by size reads the sizes, which no map allows
        self.in_turn = self.engine.sequential_clients or self.one.form.ragged
        self._over_grid: Callable[..., Any] = loop_map if self.in_turn else vmap
        self.large = False  # whether the state is large
        self.postpones_rows = False  # whether rounds change memories in place
        self.drawless = set[str]()  # the mapped functions that draw nothing, for certain
        self._map_runs()

    def _map_runs(self) -> None:
        """Map the round and the metrics over the grid and the seeds."""
        draw_axis = 0 if len(self.drawing) > 1 else None
        self._step = self._map(self._round, (0, 0), (0, draw_axis))  # of state and draw
        self._measure = self._map(self._metrics, (0,), (0,))

    def start(self) -> Progress:
        """The states before round 0, `[G, S, ...]`, and generators for the draws.

        There is a generator for each seed, or for each grid point and seed if their draws differ.
        """
        states = [self._first_states(algorithm) for algorithm in self.grid]
        shapes = [[list(x.shape) for x in pytree.tree_leaves(each)] for each in states]
        for other in shapes:
            fits, remedy = other == shapes[0], "run the points of the grid one by one"
            who = f"init of {type(self.template).__name__}"
            rule = f"return tensors of shapes {shapes[0]} at every point of the grid"
            checks.require(fits, "run", who, rule, other, remedy)
        if len(states) == 1:  # a large state is not copied again
            state = pytree.tree_map(lambda x: x.unsqueeze(0), states[0])
        else:
            state = stack_trees(states)
        state = pytree.tree_map(lambda x: x.to(self.device), state)
        self.large = is_large(state)
        self.postpones_rows = self.large
        return Progress(state, self._generators())

    def _generators(self) -> list[torch.Generator]:
        """The generators of the draws from round 0 on."""
        return [seeded(seed, "rounds") for _ in self.drawing for seed in self.seeds]

    def _first_states(self, algorithm: Algorithm) -> Any:
        """The first states of one grid point for all seeds, `[S, ...]`."""
        by_problem = {id(p): algorithm.init(p) for p in {id(p): p for p in self.problems}.values()}
        return stack_trees([by_problem[id(p)] for p in self.problems])

    def go_on(self, now: Progress, trace: Trace, config: dict[str, Any]) -> Progress:
        """Continue from the end of a trace that `run` returned.

        Raises ValueError unless the trace belongs to this run (see `identity`), apart from its
        number of rounds, and has its state.
        """
        own = {"algorithm": config["algorithms"][0], **config}
        own.pop("algorithms")
        theirs = dict(trace.config)
        for name in ("rounds", "schedules"):
            own.pop(name, None)
            theirs.pop(name, None)
        fits = len(self.grid) == 1 and theirs == own and type(trace.state) is type(now.state)
        rule = "be a trace of this algorithm, problem, seeds and evaluate_every, with its state"
        remedy = "a file has models only: use `checkpoint`"
        checks.require(fits, "run", "start", rule, trace.config.get("algorithm"), remedy)
        part = self.identity.difference(trace.identity)
        checks.require(not part, "run", "start", "be a trace of this run", f"another {part}")
        # the rounds may change the state in place, but not the caller's
        copied = pytree.tree_map(lambda x: x.to(self.device, copy=True), trace.state)
        now.state = pytree.tree_map(lambda x: x.unsqueeze(0), copied)
        now.round = int(trace.rounds[-1])
        for _ in range(now.round):
            self.draws(now.rngs, 1)
        parts = ((now.metrics, trace.metrics, -1), (now.info, trace.info, None))
        for blocks, curves, end in parts:
            each = {k: torch.as_tensor(v[None, :, :end]) for k, v in curves.items()}
            blocks.append({k: x.to(self.device) for k, x in each.items()})
        return now

    def draws(self, rngs: list[torch.Generator], rounds: int) -> Draw:
        """The draws of some rounds for all seeds, on the run's device.

        They are `[rounds, S, ...]`, or `[rounds, G, S, ...]` if those of the grid points differ.
        """
        count = len(self.seeds)
        if len(self.drawing) == 1:
            drawn = self._draws_of(self.template, rngs, rounds)
        else:
            each = [
                self._draws_of(point, rngs[g * count : (g + 1) * count], rounds)
                for g, point in enumerate(self.drawing)
            ]
            drawn = pytree.tree_map(lambda *xs: _stack_alike(xs, 1), *each)
        return pytree.tree_map(self._send, drawn)  # type: ignore[no-any-return]

    def _draws_of(self, algorithm: Algorithm, rngs: list[torch.Generator], rounds: int) -> Draw:
        """The draws of one grid point for all seeds, `[rounds, S, ...]`."""
        drawn = draw_many(algorithm, self.problems, rngs, rounds)
        if drawn is not None:
            return drawn
        pairs = list(zip(self.problems, rngs, strict=True))
        return _stack_draws(
            [draw_with_coin(algorithm, p, g) for _ in range(rounds) for p, g in pairs], rounds
        )

    def _send(self, x: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """Move a tensor to the run's device; a GPU copies it while the CPU continues."""
        if self.device.type == "cuda":
            return x.pin_memory().to(self.device, non_blocking=True)
        return x.to(self.device)

    def step(self, state: Any, draw: Draw, number: int = 0) -> tuple[Any, Info]:
        """Run one round of every run; `number` counts the rounds from 0.

        It may change memories in `state` in place. Raises ValueError as `compute` does.
        """
        after, info = self.compute(state, draw, number)
        return write_rows(after), info

    def compute(self, state: Any, draw: Draw, number: int = 0) -> tuple[Any, Info]:
        """The state after a round of every run, in which `write_rows` is still to be called.

        Raises ValueError if the round branches on a tensor's value or draws random numbers, or if a
        schedule takes a field out of its range.
        """
        if self.schedules.rules:
            self.schedules.apply(self.hyper, number + 1)
        try:
            after, info = self._explained("_step", state, draw)
        except Exception:
            if not self.postpones_rows:
                raise
            self.postpones_rows = False  # the round may have read a memory that it has stored
            return self.compute(state, draw, number)
        return attach_memories(state, after), info

    def measure(self, w: Float[Tensor, "G S d"]) -> Info:
        """The problem's metrics for every run."""
        values: Info = self._explained("_measure", w)
        return values | self._measure_on_host(w)

    def _measure_on_host(self, w: Float[Tensor, "G S d"]) -> Info:
        """The problem's metrics, computed by plain Python for one run after another."""
        values: dict[str, list[float]] = {}
        if all(problem.host_metrics is None for problem in self.problems):
            return {}
        for models in w.detach().cpu():
            for problem, model in zip(self.problems, models, strict=True):
                if problem.host_metrics is not None:
                    for name, value in problem.host_metrics(model, problem).items():
                        values.setdefault(name, []).append(value)
        return {
            name: torch.tensor(own, dtype=torch.float64, device=w.device).view(w.shape[:2])
            for name, own in values.items()
        }

    def _explained(self, name: str, *arguments: Any) -> Any:
        """The value of a mapped function; raises ValueError if no map can follow the function."""
        function = getattr(self, name)
        before = torch.get_rng_state()
        try:
            result = function(*self.fixed, *arguments)
        except RuntimeError as error:
            if not (why := explain_map_error(error)):
                if self._over_grid is loop_map or 1 in (len(self.grid), len(self.seeds)):
                    raise
                # torch's losses do not broadcast their targets under fewer than three maps
                self._over_grid = loop_map
                self._map_runs()
                return self._explained(name, *arguments)
            raise ValueError(f"{type(self.template).__name__}: a round must not {why}.") from error
        if name not in self.drawless and not torch.equal(before, torch.get_rng_state()):
            if draws_numbers(function, (*self.fixed, *arguments)):
                why = explain_map_error(RuntimeError("random operation"))
                raise ValueError(f"{type(self.template).__name__}: a round must not {why}.")
            self.drawless.add(name)  # another thread draws, maybe in every round
        return result

    def _round(self, hyper: Any, own: Any, common: Any, state: Any, draw: Draw) -> Any:
        fed = self.engine(self.one.problem(own, common))
        fed.gradient = self.gradient
        fed.postpones_rows = self.postpones_rows
        after, info = fill(self.template, hyper).round(fed, state, draw)
        return name_changes(state, after), info

    def _metrics(self, hyper: Any, own: Any, common: Any, w: Tensor) -> Any:  # noqa: ARG002
        problem = self.one.problem(own, common)
        values = problem.metrics(w, problem)
        check_metrics(problem, values)
        return values

    def _map(self, function: Callable[..., Any], seed_dims: Any, grid_dims: Any) -> Any:
        """Map `function` over the grid and the seeds, by vmap or plain loops."""
        mapper = loop_map if self.in_turn else vmap
        over_seeds = (None, 0, None, *seed_dims)
        over_grid = (0 if self.hyper else None, None, None, *grid_dims)
        one = (squeeze_map if len(self.seeds) == 1 else mapper)(function, over_seeds)
        return (squeeze_map if len(self.grid) == 1 else self._over_grid)(one, over_grid)

    def speed_up(self, state: Any, rounds: int, every: int) -> CompiledRounds | None:
        """Capture the round of a longer run; compile several rounds of a long run into one call.

        `state` is a state of the runs, which stays as it is.

        Rounds that cannot be captured or compiled are mapped as they are. So are simulators: each
        step would be captured separately, and episodes change when numbers are rounded differently.
        """
        simulated = self.problems[0].simulator is not None
        if self.in_turn or simulated or rounds < CAPTURE:
            return None
        draw = index_tree(self.draws(self._generators(), 1), 0)
        if clients_at_once(draw.participants.shape[-1], self.problems[0].dim):
            return None  # a record of all parts would be long, and Python's time does not matter
        after, _ = self.compute(state, draw)  # raises a readable error for an invalid round
        plain = self._step
        try:
            step = capture(plain, *self.fixed, state, draw)
            measure = capture(self._measure, *self.fixed, state.w)
        except RuntimeError:  # the server reads a value, which is possible with one seed
            return None
        self._step, self._measure = step, measure
        call = rounds_per_call(step, rounds, every)
        step.apply(SHORTER)
        if not call or self.schedules.rules or has_changes(after):
            return None
        try:
            return CompiledRounds(plain, self.fixed, state, draw, call)
        except Exception as error:  # any fault of the compiler, or no compiler
            warnings.warn(f"run: rounds are captured, not compiled: {error!s:.200}", stacklevel=2)
            return None

    def traces(self, now: Progress, every: int, config: dict[str, Any]) -> list[Trace]:
        """One Trace for each grid point, on the CPU."""
        metrics, info = _as_curves(now.metrics), _as_curves(now.info)
        evaluated = np.array([*range(0, now.round, every), now.round])
        for name, curves in metrics.items():
            if len(bad := np.argwhere(np.isnan(curves))):
                _, s, t = bad[bad[:, 2].argmin()]
                warnings.warn(
                    f"run: metric {name!r} is NaN from round {evaluated[t]} on (seed "
                    f"{self.seeds[s]}); look for a quotient or a logarithm in it.",
                    stacklevel=3,
                )
        common = {k: v for k, v in config.items() if k != "algorithms"}
        gpu = self.device.type == "cuda"
        states = [index_tree(now.state, g) for g in range(len(self.grid))]
        outputs = [_output(point, state) for point, state in zip(self.grid, states, strict=True)]
        ran_on = {
            "device": torch.cuda.get_device_name(self.device) if gpu else "cpu",
            "threads": count_threads(self.one.form.dim, self.device),
            "compiled": now.compiled,  # the number of compiled rounds
            "products": product_library(),  # of matrices in captured and compiled rounds
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
                state=pytree.tree_map(Tensor.cpu, state),
                output=outputs[g],
                identity=self.identity,
            )
            for g, state in enumerate(states)
        ]


def make_problem(problem: Callable[[int], Problem], seed: int) -> Problem:
    """The problem of a seed; raises TypeError unless the function takes the seed alone."""
    try:
        made = problem(seed)
    except TypeError as error:
        rule = f"be a Problem, or a function of the seed alone ({error})"
        raise TypeError(checks.sentence("run", "problem", rule, problem)) from error
    checks.value("run", f"problem({seed})", made, Problem)
    return made


def _output(algorithm: Algorithm, state: Any) -> NDArray[np.float64] | None:
    """The solutions of all seeds `[S, d]` where a method's solution is not its model."""
    output = getattr(algorithm, "output", None)
    return None if output is None else np.asarray(vmap(output)(state).double().cpu())


def draws_alike(template: Algorithm, names: Sequence[str], problem: Problem) -> bool:
    """Whether an algorithm draws without the named numbers, so that all grid points draw alike.

    It draws once with numbers that have no value; a draw that reads one of them fails.
    """
    unknown = {name: torch.empty((), device="meta") for name in names}
    expected = template.draw(problem, seeded(0, "rounds"))
    try:
        drawn = fill(template, unknown, change_unchecked).draw(problem, seeded(0, "rounds"))
        pairs = zip(pytree.tree_leaves(drawn), pytree.tree_leaves(expected), strict=True)
        return all(not x.is_meta and torch.equal(x, y) for x, y in pairs)
    except Exception:  # whatever the draw does with such a number
        return False


def _stack_draws(draws: Sequence[Draw], rounds: int) -> Draw:
    """Stack the draws of some rounds and all seeds as one `[rounds, S, ...]`."""

    def stacked(*each: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        return _stack_alike(each, 0).view(rounds, -1, *each[0].shape)

    return pytree.tree_map(stacked, *draws)  # type: ignore[no-any-return]


def _stack_alike(parts: Sequence[Shaped[Tensor, "..."]], axis: int) -> Shaped[Tensor, "..."]:
    """Stack parts of draws; raises ValueError unless they have one shape."""
    shapes = [list(shape) for shape in {x.shape for x in parts}]
    remedy = "run the seeds and the points of a grid one by one"
    name = "draws of all seeds and grid points"
    checks.require(len(shapes) == 1, "run", name, "have one shape", shapes[:2], remedy)
    return torch.stack(list(parts), axis)


def _as_curves(blocks: list[dict[str, Tensor]]) -> dict[str, NDArray[np.float64]]:
    """Join the blocks: one `[G, S, T]` in float64 for each name."""
    return {k: x.double().numpy() for k, x in join_blocks(blocks).items()}


def count_threads(dim: int, device: torch.device) -> int:
    """The number of threads: one for small problems on the CPU, else the caller's number."""
    return 1 if device.type == "cpu" and dim < SMALL else torch.get_num_threads()
