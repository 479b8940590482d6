"""The training loop: it runs rounds in chunks, checks for divergence, evaluates, checkpoints."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from fedlib.core.problem import Draw
from fedlib.core.trees import clone_tree, index_tree
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import Checkpoint, Progress
from fedlib.engine.compile import CompiledRounds, stack_rounds
from fedlib.engine.memories import write_rows

#: A function `(round, metrics, state) -> whether to stop the run`.
Callback = Callable[[int, dict[str, Tensor], Any], bool | None]
CHUNK = 50  # the most rounds between two checks of the state (is it finite, save it now?)
SHORT = 5.0  # seconds; after a chunk that takes less, the next chunk is twice as long


class Diverged(FloatingPointError):
    """The model of `seed` is not finite after `round`; `state` is the last finite state.

    >>> from fedlib import FedAvg, problems, run
    >>> run(FedAvg(1e9, 2, 4), problems.quadratics(), rounds=9)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    Diverged: FedAvg: the model is not finite after round 2
    """

    def __init__(self, text: str, state: Any, round_: int, seed: int) -> None:
        super().__init__(text)
        self.state = state
        self.round = round_
        self.seed = seed

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all arguments; by default an exception pickles its text alone."""
        return type(self), (*self.args, self.state, self.round, self.seed)


class RoundLoop:
    """The rounds of one call of `run`, from the current state to the last round."""

    def __init__(
        self,
        runs: BatchedRuns,
        rounds: int,
        every: int,
        callback: Callback | None = None,
    ) -> None:
        self.runs = runs
        self.rounds = rounds
        self.every = every
        self.callback = callback
        self.stopped = False
        self.compiled: CompiledRounds | None = None

    def prepare(self, state: Any) -> None:
        """Capture or compile the rounds, if they are many; the state stays as it is."""
        self.compiled = self.runs.speed_up(state, self.rounds, self.every)

    def run(
        self,
        progress: Progress,
        show: bool,
        checkpoint: Checkpoint,
    ) -> Progress:
        """Run all remaining rounds, and the evaluation after the last; `show` a progress bar.

        If an error or an interruption ends the rounds, the checkpoint holds the last whole round,
        or if the model is not finite, a round before.
        """
        self.prepare(progress.state)
        name = type(self.runs.template).__name__
        first = progress.round
        hidden = not show
        with tqdm(total=self.rounds, initial=first, desc=name, delay=3, disable=hidden) as bar:
            try:
                self._run_chunks(progress, checkpoint, bar)
            except BaseException as error:
                progress.drop_unfinished(self.every)
                if progress.round > first:
                    save_last(progress, checkpoint, error)
                raise
        measured = self.runs.measure(progress.state.w)
        progress.metrics.append(stack_rounds([measured]))
        return progress

    def _run_chunks(
        self,
        progress: Progress,
        checkpoint: Checkpoint,
        bar: Any,
    ) -> None:
        """Run chunks of rounds, which become longer while they are short, to the last round."""
        length = 1
        while progress.round < self.rounds and not self.stopped:
            first = progress.round
            started_at = time.perf_counter()
            self._run_chunk(progress, length)
            seconds = time.perf_counter() - started_at
            if seconds < SHORT and not self.runs.large:
                length = min(2 * length, CHUNK)
            progress.seconds += seconds
            is_last = progress.round == self.rounds or self.stopped
            checkpoint.save(progress, done=is_last)
            bar.update(progress.round - first)

    def _run_chunk(self, progress: Progress, length: int) -> None:
        """Run some rounds; raise Diverged, with the state before them, if they diverge.

        A large state is not copied. It is looked at after every round, which changes memories in
        place only if its models are finite.
        """
        before = progress.state
        if not self.runs.large:
            before = clone_tree(before)
        first = progress.round
        rng_states = [rng.get_state() for rng in progress.rngs]
        draws = self.advance(progress, length)
        if not torch.isfinite(progress.state.w).all():
            vars(progress).update(state=before, round=first)
            restore_generators(progress.rngs, rng_states)
            raise self._diverged(before, draws, first)

    def advance(self, progress: Progress, length: int) -> Draw:
        """Run `length` rounds or compiled calls, with their evaluations; return their draws.

        If the rounds end early, the generators stand where the last whole round has left them.
        """
        call = self._call_length()
        # end at a multiple of a call's length, so that a resumed run makes the same calls
        to_multiple = call * length - progress.round % call
        count = min(to_multiple, self.rounds - progress.round)
        first = progress.round
        rng_states = [rng.get_state() for rng in progress.rngs]
        try:
            draws = self.runs.draws(progress.rngs, count)
            self._run_rounds(progress, draws, count)
        finally:
            done = progress.round - first
            if done < count:
                restore_generators(progress.rngs, rng_states)
                if done:
                    self.runs.draws(progress.rngs, done)
        return index_tree(draws, slice(done))  # type: ignore[no-any-return]

    def _call_length(self) -> int:
        """The number of rounds in one call."""
        if self.compiled is None:
            return 1
        return self.compiled.rounds

    def _run_rounds(
        self,
        progress: Progress,
        draws: Draw,
        count: int,
    ) -> None:
        """Run the rounds of some draws until the callback ends the run."""
        call = self._call_length()
        done = 0
        while done < count:
            if progress.round % self.every == 0:
                self._evaluate(progress)
                if self.stopped:
                    return
            to_evaluation = self.every - progress.round % self.every
            length = min(count - done, to_evaluation)
            whole_calls = length // call * call
            if self.compiled and whole_calls and progress.round % call == 0:
                of_calls = index_tree(draws, slice(done, done + whole_calls))
                state, info = self.compiled(progress.state, of_calls)
                progress.add(state, info, whole_calls, compiled=True)
                done += whole_calls
            else:
                of_rounds = index_tree(draws, slice(done, done + length))
                self._run_one_by_one(progress, of_rounds, length)
                done += length

    def _evaluate(self, progress: Progress) -> None:
        """Measure the models, or stop if the callback says so."""
        measured = self.runs.measure(progress.state.w)
        if self.callback is not None:
            state = progress.state
            if self.runs.postpones_rows:  # later rounds may change its memories
                state = clone_tree(state)
            if self.callback(progress.round, measured, state):
                self.stopped = True
                return
        progress.metrics.append(stack_rounds([measured]))

    def _run_one_by_one(
        self,
        progress: Progress,
        draws: Draw,
        count: int,
    ) -> None:
        """Run some rounds; those that are whole count even if an error ends the others."""
        first = progress.round
        infos: list[dict[str, Tensor]] = []
        last = (progress.state, 0)  # one assignment a round, which no interruption divides
        try:
            for t in range(count):
                state, info = self.runs.compute(last[0], index_tree(draws, t), first + t)
                infos.append(info)
                last = (state, t + 1)
                last = (write_rows(state), t + 1)
        finally:
            state, done = last
            if done:
                progress.add(write_rows(state), stack_rounds(infos[:done]), done)

    def _diverged(
        self,
        state: Any,
        draws: Draw,
        first: int,
    ) -> Diverged:
        """The error after a first state that is not finite, found by rounds one by one."""
        runs = self.runs
        last = len(draws.participants) - 1
        for t in range(last + 1):
            after, _ = runs.step(clone_tree(state), index_tree(draws, t), first + t)
            is_finite = torch.isfinite(after.w).flatten(2).all(-1)  # [G, S]
            # all may be finite after the last round, if only compiled rounds overflow
            if t == last or not is_finite.all():
                break
            state = after
        g = 0
        s = 0
        if not is_finite.all():
            g, s = is_finite.logical_not().nonzero()[0].tolist()
        remedy = "smaller steps"
        if hasattr(runs.template, "lr"):
            remedy = "a smaller lr"
        return Diverged(
            f"{type(runs.template).__name__}: the model is not finite after round {first + t} "
            f"(seed {runs.seeds[s]}, {runs.grid.points[g]!r}); the last finite state is in "
            f"error.state; try {remedy}.",
            index_tree(state, (g, s)),
            first + t,
            runs.seeds[s],
        )


def restore_generators(
    rngs: Sequence[torch.Generator],
    states: Sequence[Tensor],
) -> None:
    """Set some generators back to earlier states."""
    for rng, state in zip(rngs, states, strict=True):
        rng.set_state(state)


def save_last(
    progress: Progress,
    checkpoint: Checkpoint,
    error: BaseException,
) -> None:
    """Save the last whole round of a run that an error ends."""
    try:
        checkpoint.save(progress, done=True)
    except OSError as other:
        error.add_note(str(other))
