"""What the runs of a page must have for a claim to be judged on them: minima for all claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from math import isclose
from typing import Any

from fedlib import checks

Config = Mapping[str, Any]
SEEDS = 3  # fewer give no interval worth the name
ROUNDS = 1 / 3  # of the rounds that the paper, or its authors' code, runs
MISSING = "none"
ONE_SEED = re.compile(r"_seed\d+$")  # in the name of a run that is one seed of several


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

    def __post_init__(self) -> None:
        checks.fields(self)

    def unmet(
        self,
        runs: tuple[str, ...],
        configs: Mapping[str, Config],
        stored: Mapping[str, Config],
        changed: Mapping[str, tuple[Any, Any]],
        health: Mapping[str, str],
    ) -> str:
        """What is missing, in words that follow "because"; empty if nothing is."""
        lacking = [why for run in runs for why in self._of_run(run, configs, stored)]
        lacking += [
            f"{name} is {now!r}, the paper's setting {then!r}"
            for name, (now, then) in changed.items()
            if name in self.parameters
        ]
        lacking.sort(key=lambda why: "stand_in" not in why.replace("-", "_"))  # tells most
        if not self.exact:
            lacking += self._too_few([run for run in runs if run in configs], configs)
            lacking += [
                f"{spoken(run, configs.get(run, {}))} is not healthy: {health[run]}"
                for run in runs
                if health.get(run) and not any(fnmatch(run, pattern) for pattern in self.dead)
            ]
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        return f"{lacking[0]}{more}" if lacking else ""

    def _of_run(
        self, run: str, configs: Mapping[str, Config], stored: Mapping[str, Config]
    ) -> Iterator[str]:
        """Where a run is not that of the paper's setting, or falls short of the paper itself."""
        if run not in stored:
            yield f"no run {run} of the paper's setting is stored"
            return
        if run not in configs:
            yield f"the run {run} is not among these"
            return
        now, then = (
            {k: v for k, v in c[run].items() if k not in ("bits", "seeds")}
            for c in (configs, stored)
        )
        for where, (a, b) in differences(now, then):
            here, there = (x if x == MISSING else repr(x) for x in (a, b))
            yield f"{run} has {where} {here}, the paper's setting {there}"
        for where, wanted in self.paper.items():
            have = entry(now, where)
            if where == "rounds":
                if have < ROUNDS * wanted:
                    said = f"{have} of the paper's {wanted} rounds"
                    yield f"{spoken(run, now)} has {said}, a third is needed"
            elif have != MISSING and not same(have, wanted):
                yield f"{run} has {where} {have!r}, the paper {wanted!r}"

    def _too_few(self, runs: Iterable[str], configs: Mapping[str, Config]) -> Iterator[str]:
        seeds: dict[str, set[int]] = {}
        for run in runs:
            seeds.setdefault(ONE_SEED.sub("", run), set()).update(configs[run].get("seeds", ()))
        for run, own in seeds.items():
            if len(own) < SEEDS:
                several = f"{len(own)} seed{'s' * (len(own) != 1)}"
                one = next(c for name, c in configs.items() if ONE_SEED.sub("", name) == run)
                yield f"{spoken(run, one)} has {several}, at least {SEEDS} are needed"


def spoken(run: str, config: Config) -> str:
    """A run by its method; by its name where the configuration has none."""
    method = entry(config, "algorithm.method.type")
    if method == MISSING:
        method = entry(config, "algorithm.type")
    return run if method == MISSING else f"a run of {method}"


def entry(config: Config, where: str) -> Any:
    """An entry of a configuration by its dotted name; `MISSING` where there is none."""
    found: Any = config
    for key in where.split("."):
        found = found.get(key, MISSING) if isinstance(found, Mapping) else MISSING
    return found


def differences(now: Any, then: Any, where: str = "") -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Where two configurations differ, by dotted names; the innermost value of each."""
    if now is then:
        return
    if isinstance(now, Mapping) and isinstance(then, Mapping):
        for key in dict.fromkeys([*then, *now]):
            inner = f"{where}.{key}" if where else str(key)
            yield from differences(now.get(key, MISSING), then.get(key, MISSING), inner)
    elif not same(now, then):
        yield where, (now, then)


def same(now: Any, then: Any) -> bool:
    """Whether two entries are equal; numbers read off data differ in the last bit between CPUs."""
    if isinstance(now, float) and isinstance(then, float):
        return isclose(now, then, rel_tol=1e-9)
    return bool(now == then)
