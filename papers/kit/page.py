"""A study as its notebook opens it: the parameters, the runs, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fedlib import checks
from fedlib.core import Problem, Trace
from fedlib.core.algorithm import Algorithm
from papers.kit import sources, store
from papers.kit.numbers import Number
from papers.kit.plot import Drawing
from papers.kit.store import Spec

if TYPE_CHECKING:
    from papers.kit.study import Study


@dataclass
class Page:
    """One execution of a study's notebook; `Study.open` makes it.

    The parameters are attributes: `page.lr` is the step size of the profile, or what was given in
    its place. `run` has the runs, `numbers` and `health` are of the last run.

    Attributes
    ----------
    study, profile, device, recompute : as given to `Study.open`.
    params : the parameters by name.
    """

    study: Study
    profile: str
    device: str
    recompute: bool
    params: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.__dict__.get("params", {}):
            known = ", ".join(self.params)
            raise AttributeError(f"page: parameter must be one of {known}, got {name!r}.")
        return self.params[name]

    def run(
        self, problem: Callable[[int], Problem] | None = None, **algorithms: Algorithm
    ) -> dict[str, Trace]:
        """All runs of the study, those named with the algorithm (and the problem) given.

        What is stored with the same configuration is loaded, anything else is computed. A line
        says which runs are not the study's own.

        Parameters
        ----------
        problem : seed -> Problem, of the named runs; None for the study's.
        algorithms : name of a run -> its algorithm. The other runs of the study are as they are.

        Raises
        ------
        ValueError
            if the study has no run of a name.
        """
        own_specs = self.study.specs(self.params)
        specs = dict(own_specs)
        base = self.study.resolve(self.profile)
        declared = self.study.specs(base)
        for name, algorithm in algorithms.items():
            checks.one_of(f"{self.study.name}.run", "name", name, (*specs, *declared))
            if name not in specs:
                continue  # these parameters leave it out
            own = specs[name]
            specs[name] = replace(own, algorithm=algorithm, problem=problem or own.problem)
        self.traces = store.compute_or_load(
            self.study.name,
            self.profile,
            specs,
            recompute=self.recompute,
            device=self.device,
        )
        self.__dict__.pop("numbers", None)
        sources.notify(self.study.name, self.traces)
        changed = {name: value for name, value in self.params.items() if value != base[name]}
        print(summary_line(specs, own_specs, self.profile, changed))
        return self.traces

    @cached_property
    def traces(self) -> dict[str, Trace]:
        """The runs of the last `run`; the study's own before there was one."""
        return self.run()

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """The derived numbers of the runs."""
        return self.study.derive(self.traces, self.params)

    @property
    def figures(self) -> Mapping[str, Callable[[Mapping[str, Trace]], Drawing]]:
        """The study's figures by name, each a function of the runs."""
        return self.study.figures

    @property
    def health(self) -> dict[str, str]:
        """What is wrong with each run, empty where nothing is."""
        return self.study.health(self.traces)


def summary_line(
    specs: Mapping[str, Spec], own: Mapping[str, Spec], profile: str, changed: Mapping[str, Any]
) -> str:
    """One line: how many runs are the study's own, and which are not."""
    other = [name for name, spec in specs.items() if not spec.same_as(own[name])]
    those = f"{len(specs) - len(other)} of {len(specs)} runs are the study's, profile {profile!r}"
    if changed:
        those += " with " + ", ".join(f"{name} {value}" for name, value in changed.items())
    return f"{those}{'; not so ' if other else ''}{', '.join(other)}."
