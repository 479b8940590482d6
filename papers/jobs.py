"""Runs of many groups side by side: processes that each compute whole groups and store them."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import localtime, monotonic, process_time, strftime, time
from typing import Any

import torch
from tqdm import tqdm

import papers
from fedlib.data import DataError
from fedlib.engine.loop import Diverged
from fedlib.run import resolve_device
from papers.kit import store
from papers.kit.commands import REFUSALS, SENTENCE
from papers.kit.shares import Job, jobs_of, listing, longest_first, share
from papers.kit.study import Study
from papers.kit.tenure import tenure

TICK = 2.0  # seconds between two looks at the processes
NEARLY = 0.95  # of what was predicted: the most that a job counts before it is done
KB, GB = 1024, 1e9
CONTEXT = "spawn"  # a process that is forked inherits threads that are not there
BAR = "{percentage:3.0f}%|{bar}| {elapsed} {postfix}"


@dataclass(frozen=True)
class Done:
    """What became of a job.

    Attributes
    ----------
    job, seconds, peak : which, how long it took here, most gigabytes of its process.
    busy : how long of that a core worked at it; less where others had the cores.
    refused : the sentence that it ended in, empty if it was done.
    diverged : the seed, and the round after which its model was not finite, if it ended in that.
    elsewhere : whether another process works at it.
    notes : what there is to say of its runs.
    """

    job: Job
    seconds: float = 0.0
    peak: float = 0.0
    refused: str = ""
    elsewhere: bool = False
    notes: tuple[str, ...] = ()
    busy: float = 0.0
    diverged: tuple[int, int] | None = None


def work(job: Job, device: str = "cpu", recompute: bool = False) -> Done:
    """Compute and store the runs of a job, unless another process is at it."""
    began, worked, study = monotonic(), process_time(), papers.STUDIES[job.study]
    specs = study.specs(study.resolve(job.profile))
    try:
        with tenure(job.claim) as ours:
            if not ours:
                return Done(job, elsewhere=True)
            made = store.compute_or_load(
                job.study,
                job.profile,
                {name: specs[name] for name in job.names},
                recompute=recompute,
                store=True,
                device=device,
                progress=False,
                among={name: specs[name] for name in job.group},
            )
    except (*REFUSALS, OSError, DataError) as error:
        if SENTENCE.fullmatch(str(error)) is None:
            raise
        where = (error.seed, error.round) if isinstance(error, Diverged) else None
        return Done(job, monotonic() - began, peak(), str(error), diverged=where)
    ill = {name: health.wrong for name, health in study.health(made).items() if health.wrong}
    notes = tuple(f"{job.study}/{name} is not healthy: {wrong}" for name, wrong in ill.items())
    took, busy = monotonic() - began, process_time() - worked
    return Done(job, took, peak(), notes=notes, busy=busy)


def peak() -> float:
    """The most memory that this process has had, in gigabytes; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) * KB / GB for line in lines if "VmHWM" in line), 0.0)


def begin() -> None:
    """A process of a pool: one thread, and no life beyond that of the one that made it."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other's, who ends this one
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """End this process as soon as the one that made it has ended, however."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def spread(
    jobs: Sequence[Job],
    processes: int = 1,
    *,
    device: str = "cpu",
    recompute: bool = False,
    memory: Callable[[Job], float] | None = None,
    limit: float = math.inf,
    look: Callable[[Mapping[Job, float]], object] = lambda _: None,
) -> Iterator[Done]:
    """Carry out jobs, so many at a time, in their order; each is given out as it is done.

    With `memory`, the gigabytes that a job is expected to take, none is begun that would bring
    those at work above `limit`, unless it is alone; every job then has a process of its own, which
    gives its memory back. `look` is shown every other second for how long each has been at work.
    """
    if processes == 1 and memory is None:
        yield from (work(job, device, recompute) for job in jobs)
        return
    waiting, running, since = [*jobs], dict[Future[Done], Job](), dict[Job, float]()
    with _started(processes, alone=memory is not None) as start:
        while waiting or running:
            for job in [*waiting]:
                load = sum(map(memory, [*running.values(), job])) if memory and running else 0.0
                if len(running) < processes and load <= limit:
                    running[start(work, job, device, recompute)] = job
                    since[job] = monotonic()
                    waiting.remove(job)
            for future in wait(running, TICK, FIRST_COMPLETED).done:
                del running[future]
                yield future.result()
            look({job: monotonic() - since[job] for job in running.values()})


@contextmanager
def _started(processes: int, *, alone: bool) -> Iterator[Callable[..., Future[Done]]]:
    """A function that has its call made by one of some processes, or by a new one each time.

    All of them are ended at once when this one is stopped.
    """
    others = {*multiprocessing.active_children()}

    def pool(size: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context(CONTEXT)
        return ProcessPoolExecutor(size, context, initializer=begin)

    shared = None if alone else pool(processes)

    def start(*call: Any) -> Future[Done]:
        if shared is not None:
            return shared.submit(*call)
        own = pool(1)
        future = own.submit(*call)
        own.shutdown(wait=False)
        return future

    try:
        yield start
    except BaseException as error:
        for process in {*multiprocessing.active_children()} - others:
            process.terminate()
        if isinstance(error, BrokenProcessPool):
            raise ChildProcessError(
                "jobs: every process must be left alone until it is done, one was ended from "
                "outside, or had no memory left; give the command again, with fewer at a time."
            ) from error
        raise
    finally:
        if shared is not None:
            shared.shutdown(cancel_futures=True)


class Progress:
    """A bar over the seconds that were predicted, with the time at which all will be done."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.began, self.done = monotonic(), 0.0
        self.total = sum(job.seconds for job in jobs)
        self.bar = tqdm(total=self.total or 1.0, bar_format=BAR, disable=None)

    def look(self, running: Mapping[Job, float]) -> None:
        """Count what is done, and of each that is at work no more than was predicted."""
        part = sum(min(took, NEARLY * job.seconds) for job, took in running.items())
        now = min(self.done + part, self.total)
        left = (monotonic() - self.began) * (self.total - now) / now if now else self.total
        self.bar.n = now
        self.bar.set_postfix_str(f"done about {strftime('%a %H:%M', localtime(time() + left))}")

    def tell(self, done: Done) -> None:
        """Count a job, and say on a line of its own what became of it."""
        self.done += done.job.seconds
        self.bar.write(line_of(done), file=sys.stdout)
        for note in done.notes:
            self.bar.write(note, file=sys.stderr)
        sys.stdout.flush()


def line_of(done: Done) -> str:
    """What became of a job."""
    if done.refused:
        return f"not done: {done.job.title}: {done.refused}"
    if done.elsewhere:
        return f"another process works at {done.job.title}"
    expected = f", predicted {done.job.seconds:.0f} s" if done.job.seconds else ""
    return f"stored {done.job.title}: {done.seconds:.0f} s{expected}"


def listed(
    studies: Sequence[Study], profile: str, runs: str, part: tuple[int, int]
) -> Iterator[str]:
    """The jobs of some studies, or one part of them: a line each, and the sum."""
    mine = longest_first(share([job for s in studies for job in jobs_of(s, profile, runs)], *part))
    yield from listing(mine)
    known = sum(job.seconds for job in mine)
    yield f"{len(mine)} groups of {sum(len(job.group) for job in mine)} runs, {known:.0f} s in all"


def reproduce(
    studies: Sequence[Study],
    profile: str,
    *,
    runs: str = "*",
    jobs: int = 1,
    part: tuple[int, int] = (1, 1),
    device: str = "cpu",
    recompute: bool = False,
) -> int:
    """Compute and store the runs of some studies, or one part of them; 2 if some were refused."""
    resolve_device(device)
    mine = longest_first(share([job for s in studies for job in jobs_of(s, profile, runs)], *part))
    bar, refused = Progress(mine), 0
    for done in spread(mine, jobs, device=device, recompute=recompute, look=bar.look):
        bar.tell(done)
        refused += bool(done.refused)
    bar.bar.close()
    return 2 if refused else 0
