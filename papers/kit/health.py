"""Whether runs can carry a claim: what it needs of them, and whether they are healthy.

Healthy is finite, moved, not dead, better than chance or than the start, by the curves that a
`HealthCheck` names: a pure function of what is stored. What a claim says of a method means nothing
where the method never trained; health says what is wrong.

>>> curve = np.array([[1.0, 0.6, 0.4, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]])
>>> of_run(Trace({"loss": curve}, {}, np.arange(11), (0,), {}), HealthCheck("loss"))
'dead: loss constant from round 4'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import isclose
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from papers.kit.numbers import Number

Curve = NDArray[np.float64]  # [S, T]: a metric at the evaluated rounds, of every seed
PerSeed = NDArray[np.float64]  # [S]
Seeds = NDArray[np.bool_]  # [S]: which of them

#: Names of metrics, a task's number left off -> the best there is.
BEST = {
    "loss": 0.0,
    "cost": 0.0,
    "f_gap": 0.0,
    "excess": 0.0,
    "stationarity": 0.0,
    "gap": 0.0,
    "accuracy": 1.0,
    "test_accuracy": 1.0,
}
HIGHER = ("accuracy", "reward", "psnr")  # is better; of all other metrics lower is
COUNTS = ("accuracy", "reward")  # can rest while the model moves
AWAY = 0.05  # of the way from chance to the best there is: whoever is nearer to chance is at it
LATE = 0.1  # share of the evaluated rounds whose mean is where a run ends
STRETCH = 0.2  # share of the evaluated rounds, the last, that a dead curve rests at least
ABRUPT = 1e-3  # of the whole range: who comes to rest at an optimum makes smaller steps before
DIGIT = 1e-5  # curves are stored with six significant digits
TWICE = 2.0  # standard errors that are more than noise
FEWEST = 5  # evaluated rounds from which scatter can be read
Config = Mapping[str, Any]
T = TypeVar("T")
SEEDS = 3  # fewer give no interval worth the name
ROUNDS = 1 / 3  # of the rounds that the paper, or its authors' code, runs
MISSING = "none"
ONE_SEED = re.compile(r"_only_seed\d+$")  # in the name of a run that is one seed of several


@dataclass(frozen=True)
class HealthCheck:
    """What tells whether a run is healthy.

    Attributes
    ----------
    metric : its name, or a pattern such as `"loss_*"`: then every task is watched for itself.
    chance : its value without learning, or a function of the run's configuration that gives it;
        the start where None.
    best : the best that there is, where that is known; read off the name where None.
    guard, level : a constraint `guard <= level`. A run is then better than its start if the metric
        is, or if the constraint is violated less.
    exact : why coming to rest abruptly is no death, such as "exact gradients"; empty where it is.
    rests : why nothing is asked of these runs but to be finite; empty where something is.
    task : whether it is one of a pattern's. Without a known chance a task need not gain, since
        tasks give and take; it must not be dead.
    """

    metric: str = ""
    chance: float | Callable[[Mapping[str, Any]], float] | None = None
    best: float | None = None
    guard: str = ""
    level: float = 0.0
    exact: str = ""
    rests: str = ""
    task: bool = False

    def opened(self, trace: Trace) -> list[HealthCheck]:
        """The check with all values for every metric that its pattern fits; refused if none."""
        if self.rests:
            return [self]
        fitting = [metric for metric in trace.metrics if fnmatchcase(metric, self.metric)]
        if not fitting or self.guard not in ("", *trace.metrics):
            metrics = ", ".join(trace.metrics)
            name = self.guard if fitting else self.metric
            raise ValueError(f"HealthCheck: metric must be among {metrics}, got {name!r}.")
        best = self.best
        if best is None:
            best = BEST.get(stem(self.metric))
        chance = self.chance
        if callable(chance):
            chance = chance(trace.config)
        task = self.task or "*" in self.metric
        complete = replace(self, best=best, chance=chance, task=task)
        return [replace(complete, metric=metric) for metric in fitting]

    @property
    def sign(self) -> float:
        """What turns the metric so that lower is better."""
        higher = stem(self.metric).endswith(HIGHER)
        return -1.0 if higher else 1.0

    def shown(self, x: float) -> str:
        """A share as per cent, anything else with four digits, for losses differ in the third."""
        if stem(self.metric).endswith("accuracy"):
            return f"{100 * x:.3g} %"
        return f"{x:.4g}"


HealthChecks = Mapping[str, HealthCheck | tuple[HealthCheck, ...]]


def nothing(why: str) -> HealthCheck:
    """For runs that optimize nothing: closed forms, probes, optima known beforehand."""
    return HealthCheck(rests=why)


def learning(chance: float | Callable[[Mapping[str, Any]], float]) -> tuple[HealthCheck, ...]:
    """For runs of a classifier: training loss, and test accuracy beyond that of guessing.

    Where classes differ in size, guessing is to answer the most frequent one.
    """
    return HealthCheck("loss"), HealthCheck("accuracy", chance=chance)


def first_fit(run: str, patterns: Mapping[str, T], usual: T) -> T:
    """What stands under the first pattern that a run's name fits; the usual if under none."""
    for pattern, entry_of_pattern in patterns.items():
        if fnmatchcase(run, pattern):
            return entry_of_pattern
    return usual


def of_run(trace: Trace, watched: HealthCheck | tuple[HealthCheck, ...] = ()) -> str:
    """What is wrong with a run by some checks; else empty.

    Not finite or never moved, dead or at chance in some seed, or no better than the start in half
    of the seeds or more.
    """
    checks = watched if isinstance(watched, tuple) else (watched,)
    judged: list[HealthCheck] = []
    for check in checks:
        judged += check.opened(trace)
    broken = not_finite(trace, judged)
    if broken or not judged or judged[0].rests:
        return broken
    faults = [never_moved(trace, judged), dead(trace, judged)]
    chances_first = sorted(judged, key=lambda check: check.chance is None)
    faults += [no_gain(trace, check) for check in chances_first]
    return next(filter(None, faults), "")


def not_finite(trace: Trace, judged: Sequence[HealthCheck]) -> str:
    """From which round in how many seeds a curve is not finite.

    A metric that nobody watches may be undefined from the start.
    """
    watched = watched_curves(judged)
    shape = (len(trace.seeds), len(trace.rounds))
    bad = np.zeros(shape, bool)
    for name, x in trace.metrics.items():
        starts_finite = np.isfinite(x[:, 0]).all()
        if name in watched or starts_finite:
            bad |= ~np.isfinite(x)
    bad_rounds = bad.any(axis=0)
    bad_seeds = np.asarray(bad.any(axis=1))
    first_round = trace.rounds[bad_rounds.argmax()]
    return phrase(f"not finite from round {first_round}", bad_seeds)


def watched_curves(judged: Iterable[HealthCheck]) -> list[str]:
    """The metrics and the constraints that some checks look at."""
    names = []
    for check in judged:
        names += [check.metric, check.guard]
    return [name for name in names if name]


def never_moved(trace: Trace, judged: Sequence[HealthCheck]) -> str:
    """In how many seeds no watched curve or constraint left its start by more than rounding."""
    still = []
    for name in watched_curves(judged):
        x = trace.metrics[name]
        moved_by = np.abs(x - x[:, :1]).max(1)
        still.append(moved_by <= DIGIT * np.abs(x).max(1))
    constant = listed([check.metric for check in judged])
    return phrase(f"never moved: {constant} constant", np.all(still, axis=0))


def dead(trace: Trace, judged: Sequence[HealthCheck]) -> str:
    """From which round in how many seeds a watched curve is exactly constant, short of an optimum.

    Constant over the last fifth at least, and abruptly so: the step before was more than a
    thousandth of the curve's whole range (a method that comes to rest at an optimum slows down).
    """
    asked = [check for check in judged if not check.exact]
    resting = {check.metric: rests(trace, check) for check in asked}
    fell = [at_rest & abruptly(trace.metrics[name]) for name, at_rest in resting.items()]
    seeds = np.any(fell, axis=0)
    names = []
    columns = []
    for name, at_rest in resting.items():
        constant = at_rest & seeds
        if constant.any():
            names.append(name)
            columns.append(rests_from(trace.metrics[name])[constant].min())
    first_column = min(columns, default=0)
    first_round = int(trace.rounds[first_column]) + 1
    return phrase(f"dead: {listed(names)} constant from round {first_round}", seeds)


def rests(trace: Trace, check: HealthCheck) -> Seeds:
    """Seeds whose metric is constant over the last fifth at least, and not at the best there is.

    Of counts, which can rest while the model moves, all metrics have to.
    """
    x = trace.metrics[check.metric]
    curves = [x]
    if stem(check.metric).endswith(COUNTS):
        curves = [*trace.metrics.values()]
    since = np.max([rests_from(curve) for curve in curves], axis=0)
    columns = x.shape[1]
    stretch = max(2, round(STRETCH * (columns - 1)))
    constant = (since > 0) & (since < columns - stretch)
    return np.asarray(constant & ~at_best(x[:, -1], check))


def at_best(final_values: PerSeed, check: HealthCheck) -> Seeds:
    """Seeds that end at the best there is."""
    if check.best is None:
        return np.zeros(len(final_values), bool)
    best = check.sign * check.best
    return np.asarray(check.sign * final_values <= best + DIGIT)


def gained(trace: Trace, check: HealthCheck) -> Seeds:
    """Seeds that end better than chance or, where none is known, than their start."""
    x = trace.metrics[check.metric]
    if isinstance(check.chance, float) and check.best is not None:
        away = check.sign * (check.chance - late(x))
        whole_way = abs(check.chance - check.best)
        return np.asarray(away > AWAY * whole_way)
    better = falls(check.sign * x) | at_best(late(x), check)
    if check.guard:
        violation = np.maximum(trace.metrics[check.guard] - check.level, 0.0)
        better |= falls(violation)
    return np.asarray(better | check.task)


def no_gain(trace: Trace, check: HealthCheck) -> str:
    """That a run ends at chance, or no better than its start, and in how many seeds."""
    seeds = ~gained(trace, check)
    few = 2 * seeds.sum() < len(seeds)
    if not seeds.any() or (check.chance is None and few):
        return ""
    x = trace.metrics[check.metric][seeds]
    end = check.shown(late(x).mean())
    if isinstance(check.chance, float):
        chance = check.shown(check.chance)
        return phrase(f"at chance: {check.metric} {end} against {chance}", seeds)
    start = check.shown(x[:, 0].mean())
    return phrase(f"no better than its start: {check.metric} {end} after {start}", seeds)


def late(x: Curve) -> PerSeed:
    """The mean over the last tenth."""
    last_columns = x[:, -tenth(x) :]
    return np.asarray(last_columns.mean(1))


def tenth(x: Curve) -> int:
    """Evaluated rounds in the last tenth of a run, its start left out."""
    return max(1, round(LATE * (len(x[0]) - 1)))


def falls(x: Curve) -> Seeds:
    """Seeds whose curve ends lower than it starts, by more than rounding and noise.

    Noise is the standard error of the mean over the last tenth, from the scatter over the last
    fifth. Scatter is that from one evaluated round to the next about their common pace, so that a
    steady course has none; 0 where too few rounds are evaluated to tell.
    """
    rounding = DIGIT * np.abs(x).max(1)
    fall = x[:, 0] - late(x)
    if x.shape[1] < FEWEST:
        return np.asarray(fall > rounding)
    n = tenth(x)
    last_steps = max(2 * n, 3)
    steps = np.diff(x[:, -last_steps - 1 :], axis=1)
    noise = steps.std(1, ddof=1) / np.sqrt(2.0 * n)
    return np.asarray(fall > np.maximum(TWICE * noise, rounding))


def rests_from(x: Curve) -> NDArray[np.int64]:
    """The column from which each seed's curve is exactly constant to the end, `[S]`."""
    at_end = x == x[:, -1:]
    backwards = at_end[:, ::-1]
    since = x.shape[1] - backwards.argmin(1)
    return np.asarray(np.where(at_end.all(1), 0, since))


def abruptly(x: Curve) -> Seeds:
    """Seeds whose curve came to rest from a step that was not small."""
    since = rests_from(x)
    before = np.maximum(since - 1, 0)
    rows = np.arange(len(x))
    step = np.abs(x[rows, since] - x[rows, before])
    small = ABRUPT * np.ptp(x, axis=1)
    rounding = DIGIT * np.abs(x[:, -1])
    return np.asarray(step > np.maximum(small, rounding))


def stem(metric: str) -> str:
    """The name of a metric without a task's number, or a pattern's end."""
    name, _, _ = metric.partition("[")
    return name.rstrip("0123456789*").rstrip("_")


def listed(texts: Sequence[str]) -> str:
    """The first of some texts, and how many more."""
    first = "".join(texts[:1])
    if len(texts) > 1:
        return f"{first} and {len(texts) - 1} more"
    return first


def phrase(problem: str, seeds: Seeds) -> str:
    """What is wrong and in how many seeds, if not in all; empty if in none."""
    if not seeds.any():
        return ""
    if seeds.all():
        return problem
    return f"{problem} in {seeds.sum()} of {len(seeds)} seeds"


@dataclass(frozen=True)
class Evidence:
    """What claims are judged by.

    Attributes
    ----------
    numbers : the measured numbers.
    configs : the configurations of the runs that the numbers come from, by their names.
    stored : those of the setting that the claims are about.
    changed : the parameters that differ, each with its value and the paper's.
    health : what is wrong with a run, empty where nothing is.
    edits : the runs that a reader changed, and how.
    """

    numbers: Mapping[Any, Number]
    configs: Mapping[str, Config]
    stored: Mapping[str, Config]
    changed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    health: Mapping[str, str] = field(default_factory=dict)
    edits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Needs:
    """What a claim takes to be judged: the paper's setting, enough of it, and live runs.

    Every run behind the claim must be there with the configuration (algorithm, problem and its
    data, rounds) that the stored run of the full profile has, with three seeds or more; none may
    be in ill health. Where the stored run itself falls short of the paper, `paper` says so.

    Attributes
    ----------
    parameters : those of the study that decide the numbers and stand in no run's configuration;
        they must have the full profile's value.
    paper : the paper's own value of entries of a run's configuration, by dotted name such as
        `"problem.data"`; a run that has such an entry must have this value, of `"rounds"` a third
        at least.
    exact : whether nothing that a run learns changes the numbers, such as counted bits: one seed
        is enough then, and a run in ill health.
    dead : patterns of runs whose ill health is what the claim is about.
    """

    parameters: tuple[str, ...] = ()
    paper: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = False
    dead: tuple[str, ...] = ()

    def unmet(self, runs: tuple[str, ...], evidence: Evidence) -> str:
        """What is missing, in words that follow "because"; empty if nothing is."""
        lacking: list[str] = []
        for run in runs:
            lacking += self._of_run(run, evidence)
        for name, (value, full_value) in evidence.changed.items():
            if name in self.parameters:
                lacking.append(f"{name} is {value!r}, the paper's setting {full_value!r}")
        lacking.sort(key=lambda why: "stand_in" not in why.replace("-", "_"))  # tells most
        if not self.exact:
            configs = {run: evidence.configs[run] for run in runs if run in evidence.configs}
            lacking += too_few_seeds(configs)
            lacking += self._ill(runs, evidence)
        if len(lacking) > 1:
            return f"{lacking[0]} (and {len(lacking) - 1} more)"
        return "".join(lacking)

    def _ill(self, runs: Iterable[str], evidence: Evidence) -> Iterator[str]:
        """The runs in ill health that the claim is not about."""
        for run in runs:
            expected = any(fnmatchcase(run, pattern) for pattern in self.dead)
            fault = evidence.health.get(run)
            if fault and not expected:
                method = spoken(run, evidence.configs.get(run, {}))
                yield f"{method} is not healthy: {fault}"

    def _of_run(self, run: str, evidence: Evidence) -> Iterator[str]:
        """Where a run is not that of the paper's setting, or falls short of the paper itself."""
        if run not in evidence.stored:
            yield f"no run {run} of the paper's setting is stored"
            return
        if run not in evidence.configs:
            yield f"the run {run} is not among these"
            return
        config = computed_part(evidence.configs[run])
        stored = computed_part(evidence.stored[run])
        for where, (value, stored_value) in differences(config, stored):
            yield f"{run} has {where} {shown(value)}, the paper's setting {shown(stored_value)}"
        yield from self._short_of_paper(run, config)

    def _short_of_paper(self, run: str, config: Config) -> Iterator[str]:
        """Where a run falls short of the paper itself."""
        for where, paper_value in self.paper.items():
            value = entry(config, where)
            if where == "rounds":
                if value < ROUNDS * paper_value:
                    share = f"{value} of the paper's {paper_value} rounds"
                    yield f"{spoken(run, config)} has {share}, a third is needed"
            elif value != MISSING and not same(value, paper_value):
                yield f"{run} has {where} {value!r}, the paper {paper_value!r}"


def computed_part(config: Config) -> Config:
    """A configuration without seeds, and without what is not computed from it."""
    computed = dict(config)
    for key in ("bits", "labels", "seeds"):
        computed.pop(key, None)
    return computed


def shown(value: Any) -> str:
    """An entry of a configuration in words."""
    return MISSING if value == MISSING else repr(value)


def too_few_seeds(configs: Mapping[str, Config]) -> Iterator[str]:
    """The runs with fewer seeds than an interval takes."""
    examples: dict[str, Config] = {}
    for name, config in configs.items():
        examples.setdefault(whole_run(name), config)
    for run, seeds in seeds_of(configs).items():
        if len(seeds) < SEEDS:
            plural = "seed" if len(seeds) == 1 else "seeds"
            method = spoken(run, examples[run])
            yield f"{method} has {len(seeds)} {plural}, at least {SEEDS} are needed"


def seeds_of(configs: Mapping[str, Config]) -> dict[str, set[int]]:
    """The seeds of every run, those that are runs of their own together."""
    seeds: dict[str, set[int]] = {}
    for name, config in configs.items():
        run_seeds = seeds.setdefault(whole_run(name), set())
        run_seeds.update(config.get("seeds", ()))
    return seeds


def whole_run(name: str) -> str:
    """The name of a run, without the number of the seed that it has alone."""
    return ONE_SEED.sub("", name)


def spoken(run: str, config: Config) -> str:
    """A run by its method; by its name where the configuration has none."""
    for where in ("algorithm.method.type", "algorithm.type"):
        method = entry(config, where)
        if method != MISSING:
            return f"a run of {method}"
    return run


def entry(config: Config, where: str) -> Any:
    """An entry of a configuration by its dotted name; `MISSING` where there is none."""
    value: Any = config
    for key in where.split("."):
        if not isinstance(value, Mapping):
            return MISSING
        value = value.get(key, MISSING)
    return value


def differences(
    config: Any, stored_config: Any, where: str = ""
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Where two configurations differ, by dotted names; the innermost value of each."""
    if config is stored_config:
        return
    if isinstance(config, Mapping) and isinstance(stored_config, Mapping):
        for key in dict.fromkeys([*stored_config, *config]):
            inner = f"{where}.{key}" if where else str(key)
            value = config.get(key, MISSING)
            stored_value = stored_config.get(key, MISSING)
            yield from differences(value, stored_value, inner)
    elif not same(config, stored_config):
        yield where, (config, stored_config)


def same(value: Any, stored_value: Any) -> bool:
    """Whether two entries are equal; numbers read off data differ in the last bit between CPUs."""
    if isinstance(value, float) and isinstance(stored_value, float):
        return isclose(value, stored_value, rel_tol=1e-9)
    return bool(value == stored_value)
