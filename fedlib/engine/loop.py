"""The training loop: it runs rounds in chunks, checks for divergence, evaluates, checkpoints."""

import time
from collections.abc import Callable
from typing import Any, NoReturn

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
        self, runs: BatchedRuns, rounds: int, every: int, callback: Callback | None = None
    ) -> None:
        self.runs, self.rounds, self.every = runs, rounds, every
        self.callback, self.stopped = callback, False
        self.compiled: CompiledRounds | None = None

    def prepare(self, state: Any) -> None:
        """Capture or compile the rounds, if they are many; the state stays as it is."""
        self.compiled = self.runs.speed_up(state, self.rounds, self.every)

    def run(self, now: Progress, show: bool, checkpoint: Checkpoint) -> Progress:
        """Run all remaining rounds, and the evaluation after the last.

        If an error or an interruption ends the rounds, the checkpoint holds the last whole round,
        or if the model is not finite, a round before.
        """
        self.prepare(now.state)
        name = type(self.runs.template).__name__
        begun = now.round
        length = 1
        with tqdm(total=self.rounds, initial=begun, desc=name, delay=3, disable=not show) as bar:
            try:
                while now.round < self.rounds and not self.stopped:
                    began = time.perf_counter()
                    first = now.round
                    self._chunk(now, length)
                    took = time.perf_counter() - began
                    if took < SHORT and not self.runs.large:
                        length = min(2 * length, CHUNK)
                    now.seconds += took
                    checkpoint.save(now, done=now.round == self.rounds or self.stopped)
                    bar.update(now.round - first)
            except BaseException as error:
                now.drop_unfinished(self.every)
                if now.round > begun:
                    self._save_last(now, checkpoint, error)
                raise
        now.metrics.append(stack_rounds([self.runs.measure(now.state.w)]))
        return now

    def _chunk(self, now: Progress, length: int) -> None:
        """Run some rounds; raise Diverged, with the state before them, if they diverge.

        A large state is not copied. It is looked at after every round, which changes memories in
        place only if its models are finite.
        """
        before = now.state if self.runs.large else clone_tree(now.state)
        first = now.round
        rngs = [rng.get_state() for rng in now.rngs]
        draws = self.advance(now, length)
        if not torch.isfinite(now.state.w).all():
            vars(now).update(state=before, round=first)
            for rng, earlier in zip(now.rngs, rngs, strict=True):
                rng.set_state(earlier)
            self._raise_diverged(before, draws, first)

    def _save_last(self, now: Progress, checkpoint: Checkpoint, error: BaseException) -> None:
        """Save the last whole round of a run that an error ends."""
        try:
            checkpoint.save(now, done=True)
        except OSError as other:
            error.add_note(str(other))

    def advance(self, now: Progress, length: int) -> Draw:
        """Run `length` rounds or compiled calls, with their evaluations; return their draws.

        If the rounds end early, the generators stand where the last whole round has left them.
        """
        call = self.compiled.rounds if self.compiled else 1
        # end at a multiple of a call's length, so that a resumed run makes the same calls
        count = min(call * length - now.round % call, self.rounds - now.round)
        first = now.round
        rngs = [rng.get_state() for rng in now.rngs]
        try:
            draws = self.runs.draws(now.rngs, count)
            self._run_rounds(now, draws, count)
        finally:
            done = now.round - first
            if done < count:
                for rng, before in zip(now.rngs, rngs, strict=True):
                    rng.set_state(before)
                if done:
                    self.runs.draws(now.rngs, done)
        return index_tree(draws, slice(done))  # type: ignore[no-any-return]

    def _run_rounds(self, now: Progress, draws: Draw, count: int) -> None:
        """Run the rounds of some draws until the callback ends the run."""
        call = self.compiled.rounds if self.compiled else 1
        done = 0
        while done < count:
            if now.round % self.every == 0:
                measured = self.runs.measure(now.state.w)
                if self.callback and self.callback(now.round, measured, self._shown(now.state)):
                    self.stopped = True
                    return
                now.metrics.append(stack_rounds([measured]))
            many = min(count - done, self.every - now.round % self.every)  # to the next evaluation
            whole = many // call * call
            if self.compiled and whole and now.round % call == 0:
                state, info = self.compiled(now.state, index_tree(draws, slice(done, done + whole)))
                now.add(state, info, whole, compiled=True)
                done += whole
            else:
                self._run_one_by_one(now, draws, done, many)
                done += many

    def _run_one_by_one(self, now: Progress, draws: Draw, first: int, many: int) -> None:
        """Run some rounds; those that are whole count even if an error ends the others."""
        infos: list[dict[str, Tensor]] = []
        last = (now.state, 0)  # one assignment a round, which no interruption divides
        try:
            for t in range(many):
                draw = index_tree(draws, first + t)
                state, info = self.runs.compute(last[0], draw, now.round + t)
                infos.append(info)
                last = (state, t + 1)
                last = (write_rows(state), t + 1)
        finally:
            state, whole = last
            if whole:
                now.add(write_rows(state), stack_rounds(infos[:whole]), whole)

    def _shown(self, state: Any) -> Any:
        """The state as a callback may keep it: a copy if later rounds may change its memories."""
        return clone_tree(state) if self.runs.postpones_rows else state

    def _raise_diverged(self, state: Any, draws: Draw, first: int) -> NoReturn:
        """Repeat some rounds one by one, and raise at the first state that is not finite."""
        runs, count = self.runs, len(draws.participants)
        for t in range(count):
            after, _ = runs.step(clone_tree(state), index_tree(draws, t), first + t)
            bad = ~torch.isfinite(after.w).flatten(2).all(-1)  # [G, S]
            if bad.any() or t == count - 1:  # the last round, if only compiled rounds overflow
                break
            state = after
        g, s = (int(i) for i in bad.nonzero()[0]) if bad.any() else (0, 0)
        smaller = "a smaller lr" if hasattr(runs.template, "lr") else "smaller steps"
        raise Diverged(
            f"{type(runs.template).__name__}: the model is not finite after round {first + t} "
            f"(seed {runs.seeds[s]}, {runs.grid[g]!r}); the last finite state is in error.state; "
            f"try {smaller}.",
            index_tree(state, (g, s)),
            first + t,
            runs.seeds[s],
        )
