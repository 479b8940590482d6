"""The rounds and evaluations of all runs in one call of `run`: seeds and grid side by side."""

import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from fedlib.core.algorithm import Algorithm
from fedlib.core.federation import Federation, Sequential, clients_at_once, default_engine
from fedlib.core.floats import fill
from fedlib.core.problem import Draw, Info, Problem, check_metrics, try_losses
from fedlib.core.sampling import round_generators
from fedlib.core.trees import explain_map_error, index_tree, loop_map, squeeze_map
from fedlib.engine.capture import CapturedGradient, capture
from fedlib.engine.compile import SHORTER, CompiledRounds, rounds_per_call
from fedlib.engine.draws import Draws
from fedlib.engine.grid import Grid
from fedlib.engine.identity import identify
from fedlib.engine.memories import (
    attach_memories,
    has_changes,
    name_changes,
    write_rows,
)
from fedlib.engine.memory import keep_freed_memory
from fedlib.engine.randomness import draws_numbers
from fedlib.engine.stack import StackedProblem, problems_of_seeds

SMALL = 50_000  # parameters; below this number a second thread makes a round slower
CAPTURE = 200  # rounds; shorter runs are not captured, since capturing costs some tens of rounds


class BatchedRuns:
    """The round and the evaluation of all runs together; `run` has checked the arguments."""

    def __init__(
        self,
        algorithms: Sequence[Algorithm],
        problem: Problem | Callable[[int], Problem],
        seeds: tuple[int, ...],
        device: torch.device,
        engine: type[Federation] | None,
        schedules: Mapping[str, Callable[[int], float]] = types.MappingProxyType({}),
    ) -> None:
        keep_freed_memory()
        self.seeds = seeds
        self.device = device
        self.problems = problems_of_seeds(problem, seeds)
        self.stacked = StackedProblem(self.problems, device)
        first = self.problems[0]
        try_losses(first)
        self.engine = engine or default_engine(first, device)
        self.grid = Grid(algorithms, first, device, schedules)
        self.template = self.grid.template
        self.draws = Draws(self.grid.drawing, self.problems, seeds, device)
        self.fixed = (self.grid.numbers, self.stacked.own, self.stacked.common)
        tensors = [*self.stacked.own, *self.stacked.common]
        self.identity = identify(self.grid.points, first, tensors, self.grid.schedules.rules)
        self.gradient: CapturedGradient | None = None
        # a captured function has no coins among its arguments
        if self.engine is Sequential and not self.stacked.form.dropout:
            self.gradient = CapturedGradient(self.stacked.form.losses)
        self.loops_over_grid = False  # whether no map over the grid can follow the losses
        self.large = False  # whether the state is large
        self.postpones_rows = False  # whether rounds change memories in place
        self.drawless = set[str]()  # the mapped functions that draw nothing, for certain

    @property
    def in_turn(self) -> bool:
        """Whether runs are computed one after another, since no map can follow their clients."""
        # grouping clients by size reads the sizes
        return self.engine.sequential_clients or self.stacked.form.ragged

    @cached_property
    def _step(self) -> Callable[..., Any]:
        """The round of every run; after `speed_up` it may be a captured one."""
        draw_axis = 0 if self.draws.differ else None
        return self._map(self._round, (0, 0), (0, draw_axis))  # of state and draw

    @cached_property
    def _measure(self) -> Callable[..., Any]:
        """The metrics of every run."""
        return self._map(self._metrics, (0,), (0,))

    def _map(
        self,
        function: Callable[..., Any],
        seed_axes: tuple[int | None, ...],
        grid_axes: tuple[int | None, ...],
    ) -> Callable[..., Any]:
        """Map `function` over the grid and the seeds, by vmap or plain loops.

        Its first arguments are those in `fixed`. The axes are those of the other arguments.
        """
        map_seeds = choose_map(len(self.seeds), self.in_turn)
        map_grid = choose_map(len(self.grid), self.in_turn or self.loops_over_grid)
        numbers_axis = 0 if self.grid.numbers else None
        over_seeds = map_seeds(function, (None, 0, None, *seed_axes))
        mapped: Callable[..., Any] = map_grid(over_seeds, (numbers_axis, None, None, *grid_axes))
        return mapped

    def _round(
        self,
        numbers: Any,
        of_seed: Any,
        common: Any,
        state: Any,
        draw: Draw,
    ) -> Any:
        """The round of one run."""
        fed = self.engine(self.stacked.problem(of_seed, common))
        fed.gradient = self.gradient
        fed.postpones_rows = self.postpones_rows
        algorithm = fill(self.template, numbers)
        after, info = algorithm.round(fed, state, draw)
        return name_changes(state, after), info

    def _metrics(
        self,
        numbers: Any,
        of_seed: Any,
        common: Any,
        w: Tensor,
    ) -> Any:
        """The metrics of one run."""
        del numbers  # metrics are the problem's
        problem = self.stacked.problem(of_seed, common)
        values = problem.metrics(w, problem)
        check_metrics(problem, values)
        return values

    def step(
        self,
        state: Any,
        draw: Draw,
        number: int = 0,
    ) -> tuple[Any, Info]:
        """Run one round of every run; `number` counts the rounds from 0.

        It may change memories in `state` in place. Raises ValueError as `compute` does.
        """
        after, info = self.compute(state, draw, number)
        return write_rows(after), info

    def compute(
        self,
        state: Any,
        draw: Draw,
        number: int = 0,
    ) -> tuple[Any, Info]:
        """The state after a round of every run, in which `write_rows` is still to be called.

        Raises ValueError if the round branches on a tensor's value or draws random numbers, or if a
        schedule takes a field out of its range.
        """
        schedules = self.grid.schedules
        if schedules.rules:
            schedules.apply(self.grid.numbers, number + 1)
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
        if all(problem.host_metrics is None for problem in self.problems):
            return {}
        values: dict[str, list[float]] = {}
        for models in w.detach().cpu():
            for problem, model in zip(self.problems, models, strict=True):
                if problem.host_metrics is not None:
                    for name, value in problem.host_metrics(model, problem).items():
                        values.setdefault(name, []).append(value)
        metrics = {}
        for name, numbers in values.items():
            of_runs = torch.tensor(numbers, dtype=torch.float64, device=w.device)
            metrics[name] = of_runs.view(w.shape[:2])
        return metrics

    def _explained(self, name: str, *arguments: Any) -> Any:
        """The value of a mapped function; raises ValueError if no map can follow the function."""
        function = getattr(self, name)
        before = torch.get_rng_state()
        try:
            result = function(*self.fixed, *arguments)
        except RuntimeError as error:
            reason = explain_map_error(error)
            if reason:
                raise ValueError(self._refusal(reason)) from error
            is_nested = len(self.grid) > 1 and len(self.seeds) > 1
            if self.in_turn or self.loops_over_grid or not is_nested:
                raise
            # torch's losses do not broadcast their targets under fewer than three maps
            self.loops_over_grid = True
            for mapped in ("_step", "_measure"):
                vars(self).pop(mapped, None)  # mapped anew at the next use
            return self._explained(name, *arguments)
        if name not in self.drawless and not torch.equal(before, torch.get_rng_state()):
            if draws_numbers(function, (*self.fixed, *arguments)):
                reason = explain_map_error(RuntimeError("random operation"))
                raise ValueError(self._refusal(reason))
            self.drawless.add(name)  # another thread draws, maybe in every round
        return result

    def _refusal(self, reason: str) -> str:
        """The error message for a round that no map can follow."""
        return f"{type(self.template).__name__}: a round must not {reason}."

    def speed_up(
        self,
        state: Any,
        rounds: int,
        every: int,
    ) -> CompiledRounds | None:
        """Capture the round of a longer run; compile several rounds of a long run into one call.

        `state` is a state of the runs, which stays as it is.

        Rounds that cannot be captured or compiled are mapped as they are. So are simulators: each
        step would be captured separately, and episodes change when numbers are rounded differently.
        """
        has_simulator = self.problems[0].simulator is not None
        if self.in_turn or has_simulator or rounds < CAPTURE:
            return None
        rngs = round_generators(self.seeds, len(self.grid.drawing))
        draws = self.draws(rngs, 1)
        draw = index_tree(draws, 0)
        if clients_at_once(draw.participants.shape[-1], self.problems[0].dim):
            return None  # a record of all parts would be long, and Python's time does not matter
        after, _ = self.compute(state, draw)  # raises a readable error for an invalid round
        mapped = self._step
        try:
            step = capture(mapped, *self.fixed, state, draw)
            measure = capture(self._measure, *self.fixed, state.w)
        except RuntimeError:  # the server reads a value, which is possible with one seed
            return None
        self._step = step
        self._measure = measure
        call_length = rounds_per_call(step, rounds, every)
        step.apply(SHORTER)
        if not call_length or self.grid.schedules.rules or has_changes(after):
            return None
        try:
            return CompiledRounds(mapped, self.fixed, state, draw, call_length)
        except Exception as error:  # any fault of the compiler, or no compiler
            warnings.warn(f"run: rounds are captured, not compiled: {error!s:.200}", stacklevel=2)
            return None


def choose_map(runs: int, in_turn: bool) -> Callable[..., Any]:
    """The map over some runs: `vmap`, or a plain loop."""
    if runs == 1:
        return squeeze_map
    if in_turn:
        return loop_map
    return vmap


def count_threads(dim: int, device: torch.device) -> int:
    """The number of threads: one for small problems on the CPU, else the caller's number."""
    if device.type == "cpu" and dim < SMALL:
        return 1
    return torch.get_num_threads()
