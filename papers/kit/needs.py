"""What the runs of a page must have for a claim to be judged on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any

Config = Mapping[str, Any]
SEEDS = 3  # enough for a verdict on a page with fewer seeds than the stored runs
MISSING = "none"


@dataclass(frozen=True)
class Needs:
    """The paper's setting, but for the number of seeds.

    Every run behind the claim must be there, with the configuration (algorithm, problem and its
    data, rounds) that the stored run of the full profile has.

    Attributes
    ----------
    seeds : how many seeds suffice, where the stored run has more.
    parameters : those of the study that decide the numbers and stand in no run's configuration;
        they must have the full profile's value.
    """

    seeds: int = SEEDS
    parameters: tuple[str, ...] = ()

    def unmet(
        self,
        runs: tuple[str, ...],
        configs: Mapping[str, Config],
        paper: Mapping[str, Config],
        changed: Mapping[str, tuple[Any, Any]],
    ) -> str:
        """What is missing, in words that follow "because"; empty if nothing is."""
        lacking = [why for run in runs for why in self._of_run(run, configs, paper)]
        lacking += [
            f"{name} is {now!r}, the paper's setting {then!r}"
            for name, (now, then) in changed.items()
            if name in self.parameters
        ]
        lacking.sort(key=lambda why: "stand_in" not in why.replace("-", "_"))  # tells most
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        return f"{lacking[0]}{more}" if lacking else ""

    def _of_run(
        self, run: str, configs: Mapping[str, Config], paper: Mapping[str, Config]
    ) -> Iterator[str]:
        if run not in paper:
            yield f"no run {run} of the paper's setting is stored"
        elif run not in configs:
            yield f"the run {run} is not among these"
        else:
            now, then = ({k: v for k, v in c[run].items() if k != "bits"} for c in (configs, paper))
            have, full = (len(config.pop("seeds", ())) for config in (now, then))
            for where, (a, b) in differences(now, then):
                here, there = (x if x == MISSING else repr(x) for x in (a, b))
                yield f"{run} has {where} {here}, the paper's setting {there}"
            if have < min(self.seeds, full):
                yield f"{run} has {have} of the {min(self.seeds, full)} seeds that it takes"


def differences(now: Any, then: Any, where: str = "") -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Where two configurations differ, by dotted names; the innermost value of each."""
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
