"""What a run will cost: the seconds that were recorded, scaled by its work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from fedlib.core.describe import describe
from papers.kit import archive, store
from papers.kit.store import PAPER, Spec

#: What the data of a run are counted in, by the names of arguments of problems; 0 stands for all.
ROWS = ("rows", "pictures", "molecules")
TESTED = ("tested", "evaluate", "test_pictures", "test_molecules")
STEP = 3  # a gradient in units of a loss


@dataclass(frozen=True)
class Costs:
    """The recorded seconds of a study's full profile, and what is predicted from them.

    Attributes
    ----------
    specs : the runs of the full profile.
    seconds : what each stored one took.
    pace : how many times that long runs take today.
    """

    specs: Mapping[str, Spec]
    seconds: Mapping[str, float]
    pace: float = 1.0
    rates: Mapping[str, list[float]] = field(init=False)  # seconds for one row, by algorithm

    def __post_init__(self) -> None:
        rates: dict[str, list[float]] = {}
        for name, took in self.seconds.items():
            rate = took / work(self.specs[name])
            for kind in (type(self.specs[name].algorithm).__name__, ""):
                rates.setdefault(kind, []).append(rate)
        object.__setattr__(self, "rates", rates)

    def predicted(self, name: str, spec: Spec) -> float:
        """Seconds on one core: of the run of this name, else at the rate of runs of its kind.

        0 for a study of which nothing is stored.
        """
        if name in self.seconds and type(spec.algorithm) is type(self.specs[name].algorithm):
            known, same = self.specs[name], both(spec, self.specs[name])
            return self.pace * self.seconds[name] * work(spec, same) / work(known, same)
        rates = self.rates.get(type(spec.algorithm).__name__) or self.rates.get("") or [0.0]
        return self.pace * median(rates) * work(spec)


def recorded(study: str, specs: Mapping[str, Spec], larger: Mapping[str, Spec]) -> Costs:
    """The costs of a study, from its stored runs.

    The full profile's were timed when they were computed, some of them by slower code. Those in
    the paper's setting (`larger`) came later: where there are some, what half of them took at most
    beside what was to be expected is the pace.
    """
    times = took_and_expected(study, specs, larger)
    pace = median(took / expected for took, expected in times) if times else 1.0
    return Costs(specs, dict(_times(study, "full", specs)), pace)


def took_and_expected(
    study: str, specs: Mapping[str, Spec], larger: Mapping[str, Spec]
) -> list[tuple[float, float]]:
    """The seconds of each stored run in the paper's setting, and what older times say of it."""
    costs = Costs(specs, dict(_times(study, "full", specs)))
    times = _times(study, PAPER, larger)
    found = ((took, costs.predicted(name, larger[name])) for name, took in times)
    return [(took, expected) for took, expected in found if expected]


def _times(study: str, profile: str, names: Iterable[str]) -> Iterator[tuple[str, float]]:
    for name in names:
        path = store.run_path(study, profile, name)
        if archive.exists(path):
            yield name, took(path)


@archive.cached
def took(path: Any) -> float:
    """The seconds that a stored run took."""
    return float(archive.read(path, "run", curves=False)["provenance"]["wall_s"])


def work(spec: Spec, sizes: frozenset[str] | None = None) -> float:
    """How many rows a run passes through its model, about; gradients count three times.

    An evaluation passes the test rows and those of the clients, or so many of each as are
    `measured`. `sizes` are the arguments of the problem that count as numbers of rows; by default
    all.
    """
    found, own = dict(numbers(describe(spec.algorithm))), arguments(spec)
    known = {k: v for k, v in own.items() if sizes is None or k in sizes}
    clients, rows = own.get("clients", 1), max((known.get(k, 0) for k in ROWS), default=0)
    looked_at = sum(known.get(k, 0) for k in TESTED)
    looked_at += clients * known["measured"] if "measured" in known else rows
    if found.get("batch_size"):
        drawn = (found.get("participants") or clients) * found["batch_size"]
        rows = min(drawn, rows) if rows else drawn  # no client has more rows in a batch than in all
    a_round = STEP * (rows or 1) * (found.get("local_steps") or 1)
    evaluations = spec.rounds // spec.evaluate_every + 1
    return float(len(spec.seeds) * (spec.rounds * a_round + evaluations * looked_at))


def both(one: Spec, other: Spec) -> frozenset[str]:
    """The sizes that two problems name; where one says "all", nobody knows how many that are."""
    return frozenset(arguments(one)) & frozenset(arguments(other))


def arguments(spec: Spec) -> dict[str, int]:
    """The whole numbers but 0 among the arguments of a problem."""
    made = spec.problem.keywords if isinstance(spec.problem, partial) else {}
    return {k: v for k, v in made.items() if type(v) is int and v}


def numbers(described: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The whole numbers of a described algorithm; what stands inside others first."""
    for value in described.values():
        if isinstance(value, Mapping):
            yield from numbers(value)
    yield from ((k, v) for k, v in described.items() if type(v) is int)
