"""What a study is: runs by profile, numbers, claims, the paper's values; and its page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pandas as pd

from fedlib import checks
from fedlib.core import Problem, Trace
from fedlib.core.algorithm import Algorithm
from fedlib.core.files import write_json
from fedlib.run import resolve_device
from papers.kit import archive, comparisons, edits, quantities, snapshot, store
from papers.kit.claims import PAPERS, Claim, PaperValue
from papers.kit.health import Config, Evidence, HealthChecks, first_fit, of_run, seeds_of
from papers.kit.parameters import checked, nearest, requested
from papers.kit.quantities import Label, Quantities
from papers.kit.rules import Outcome
from papers.kit.store import PAPER, Spec, config_of, read_run

ALL = "all"  # in place of a paper's letter: a study of all papers' methods
#: What a page says under runs that are not the book's.
OF_BOOK = "The result above, and the sentences and captions below, are about the book's runs."
FEW = 4  # runs that a line names
Params = dict[str, Any]
Traces = Mapping[str, Trace]


@dataclass(frozen=True)
class Tolerance:
    """How far a run that is computed again, alone, elsewhere, is the stored one, and up to what.

    Attributes
    ----------
    rounds : how many of the first, where rounding in another order ends an episode a step earlier,
        or doubles in a network every few steps; None where it is the same to the end.
    rtol, atol : how much a value may differ, of itself and of the largest of its curve.
    timed : curves that are measured times, which are never the same.
    strays : how many of the run's seeds may differ: on another processor a search may leave a flat
        region of its loss elsewhere, and a small shift of the problem does not show it.
    """

    rounds: int | None = None
    rtol: float = 2e-3
    atol: float = 1e-5
    timed: tuple[str, ...] = ()
    strays: int = 0


@dataclass(frozen=True)
class Study:
    """A figure or a group of figures of a paper, as runs and what is made of them.

    Attributes
    ----------
    name, title, paper : what it is called, and what it reproduces.
    profiles : `"quick"` and `"full"`, each a table of the study's parameters.
    parameters : what each parameter means.
    specs : parameters -> the named runs.
    derive : (traces, parameters) -> the named numbers.
    claims, paper_values : what the book shows.
    watch : patterns of runs -> what tells their health; the first that fits counts. A run that
        fits none must only be finite.
    tolerances : patterns of runs -> how closely one that is computed anew follows the stored one,
        where that is not to the end and up to rounding; the first that fits counts.
    at_paper : the parameters in which the full profile falls short of the paper, or of its authors'
        code, with their values there. With them the study has a third profile, `"paper"`.
    """

    name: str
    title: str
    paper: str
    profiles: Mapping[str, Params]
    parameters: Mapping[str, str]
    specs: Callable[[Params], dict[str, Spec]]
    derive: Callable[[Traces, Params], Quantities]
    claims: tuple[Claim, ...] = ()
    paper_values: tuple[PaperValue, ...] = ()
    watch: HealthChecks = field(default_factory=dict)
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    at_paper: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.fields(self)
        checks.one_of(self.name, "paper", self.paper, (*PAPERS, ALL))

    def resolve(self, profile: str, **changes: Any) -> Params:
        """The profile's parameters with the changes that are not None; lists become tuples.

        An unknown profile or parameter, or a value of another kind, is refused.
        """
        profiles = dict(self.profiles)
        if self.at_paper:
            profiles[PAPER] = {**self.profiles["full"], **self.at_paper}
        checks.one_of(self.name, "profile", profile, tuple(profiles))
        params = dict(profiles[profile])
        for name, change in changes.items():
            checks.one_of(self.name, "parameter", name, tuple(self.parameters))
            usual = [params_of_profile[name] for params_of_profile in self.profiles.values()]
            value = checked(self.name, name, change, usual)
            if value is not None:
                params[name] = value
        return params

    def specs_of(self, profile: str) -> dict[str, Spec]:
        """The named runs of a profile."""
        return self.specs(self.resolve(profile))

    def open(
        self,
        profile: str = "full",
        *,
        device: str = "auto",
        recompute: bool = False,
        **changes: Any,
    ) -> Page:
        """The study for a notebook: its parameters, with the changes that are not None.

        Nothing runs yet; see `Page.run`. An unknown profile, parameter or device is refused, and
        so is a value of another kind than the profile's.
        """
        checks.value(self.name, "recompute", recompute, bool)
        resolve_device(device)
        params = self.resolve(profile, **changes)
        return Page(
            self,
            profile,
            device,
            recompute,
            params,
        )

    def page(self, cell: Mapping[str, Any]) -> Page:
        """The study as the parameters cell of its notebook asks for: `study.page(globals())`.

        Every parameter of the study may be a name of the cell; `profile`, `device` and `recompute`
        are too. Any other constant in small letters is refused.

        Raises
        ------
        ValueError, TypeError
            as `open`, and for a name that is no parameter, with the nearest that is.
        """
        known = (*self.parameters, "profile", "device", "recompute")
        values = requested(self.name, cell, known)
        recompute = values.get("recompute")
        values["recompute"] = checked(self.name, "recompute", recompute, [False])
        given = {name: value for name, value in values.items() if value is not None}
        return self.open(**given)

    def runs_of(self, params: Params) -> dict[str, Spec]:
        """The named runs with some parameters.

        Raises
        ------
        ValueError, TypeError
            where the parameters do not fit together, with those that are not the full profile's.
        """
        try:
            return self.specs(params)
        except Exception as error:
            first_line, _, _ = str(error).partition("\n")
            reason = first_line.rstrip(".") or type(error).__name__
            if isinstance(error, (ValueError, TypeError)) and " must " in reason:
                raise
            values = {name: value for name, (value, _) in self.changed(params).items()}
            shown = in_words(values) or "the profile's"
            raise ValueError(
                f"{self.name}: parameters must fit together, got {shown:.300}, which make no runs "
                f"({reason})."
            ) from error

    def numbers(self, traces: Traces, profile: str = "full") -> Quantities:
        """The derived numbers of some traces."""
        return self.derive(traces, self.resolve(profile))

    def reproduce(
        self, profile: str, *, device: str, recompute: bool, runs: str = "*", settle: bool = True
    ) -> dict[str, Any] | None:
        """Compute what is not stored and store it; then `settle`, unless that is False.

        `runs` is a pattern such as `"soft_*"`: only runs with such a name are stored, computed
        with all others of their groups.
        """
        resolve_device(device)
        specs = self.specs_of(profile)
        traces = store.compute_or_load(
            self.name,
            profile,
            self.chosen(specs, runs),
            recompute=recompute,
            store=True,
            device=device,
            among=specs,
        )
        for name, wrong in self.health(traces).items():
            if wrong:
                print(f"{self.name}/{name} is not healthy: {wrong}", file=sys.stderr)
        return self.settle(profile) if settle else None

    def settle(self, profile: str) -> dict[str, Any] | None:
        """Store the numbers that the stored runs give, and collect all in the study's files.

        A run that is stored under another name than it has is renamed. None before enough runs are
        there.
        """
        results = store.results_dir()
        with archive.exclusive(results):
            names = self.renamed(profile)
            if names:
                archive.collect(results, self.name, new_names={profile: names})
                comparisons.rename(self.name, profile, names)
            content = self.derived(profile)
            if content is not None:
                path = store.run_path(self.name, profile, "numbers")
                write_json(path, content)
            specs = self.specs_of(profile)
            labels = {name: spec.labels for name, spec in specs.items()}
            archive.collect(results, self.name, {profile: labels})
        return None if content is None else content["numbers"]

    def derived(self, profile: str) -> dict[str, Any] | None:
        """What is to be stored beside the runs of a profile; None before all of them are there.

        In the paper's setting as many numbers as can be had from those that are, if these are
        enough.
        """
        specs = self.specs_of(profile)
        payloads = self.held(profile, specs)
        of_profile = any(payload["profile"] == profile for payload in payloads.values())
        complete = len(payloads) == len(specs)
        enough = complete or profile == PAPER
        if not of_profile or not enough:
            return None
        traces = store.to_traces(payloads, specs)
        try:
            numbers = self.numbers(traces, profile)
        except KeyError as missing:  # a run that is not there
            if missing.args[0] not in specs:
                raise
            return None
        health = self.health(traces)
        return store.derived(
            self.name,
            profile,
            numbers,
            payloads,
            health,
        )

    def held(self, profile: str, specs: Mapping[str, Spec]) -> dict[str, dict[str, Any]]:
        """Those of a profile's runs that are stored as it declares them; only whole groups.

        The points of a grid are one group: none is judged while others, which might be chosen in
        its place, are missing.
        """
        lacking: set[str] = set()
        for name, spec in specs.items():
            if not store.is_stored(self.name, profile, name, spec):
                lacking.add(name)
        for group in store.groups(specs):
            if not lacking.isdisjoint(group):
                lacking |= group.keys()
        return {name: self.payload(name, profile) for name in specs if name not in lacking}

    def chosen(self, specs: Mapping[str, Spec], runs: str) -> dict[str, Spec]:
        """The specs whose names match a pattern, or one of several; refused if none does."""
        patterns = runs.split(",")
        names = [name for name in specs if any(fnmatch(name, pattern) for pattern in patterns)]
        if not names:
            examples = ", ".join([*specs][:3])
            raise ValueError(
                f"{self.name}: runs must match a run such as {examples}, got {runs!r}."
            )
        return {name: specs[name] for name in names}

    def health(self, traces: Traces) -> dict[str, str]:
        """What is wrong with each of some runs, empty where nothing is; see `health.of_run`."""
        faults = {}
        for name, trace in traces.items():
            watched = first_fit(name, self.watch, ())
            faults[name] = of_run(trace, watched)
        return faults

    def load(self, profile: str = "full") -> dict[str, Trace]:
        """All runs of a profile from the results folder alone; refused if one is not there.

        Of the paper's setting those that are stored; only groups that are whole.
        """
        specs = self.specs_of(profile)
        if profile == PAPER:
            payloads = self.held(profile, specs)
        else:
            payloads = {name: self.payload(name, profile) for name in specs}
        return store.to_traces(payloads, specs)

    def renamed(self, profile: str) -> dict[str, str]:
        """Runs that are stored under names that the study no longer has -> their names.

        A run is known by its configuration; of several with the same any may get a name.
        """
        specs = self.specs_of(profile)
        folder = store.run_path(self.name, profile, "any").parent
        stored = archive.names(folder) - {"numbers"}
        keys = {name: spec.key() for name, spec in specs.items() if name not in stored}
        names: dict[str, str] = {}
        for former in sorted(stored - specs.keys()):
            former_key = archive.summary(folder / f"{former}.json")["key"]
            for name, key in keys.items():
                if key is not None and key == former_key:
                    names[former] = name
                    del keys[name]
                    break
        return names

    def payload(self, run_name: str, profile: str = "full") -> dict[str, Any]:
        """One stored run as it is on disk; refused if it contradicts itself or its place."""
        return read_run(store.stored_path(self.name, profile, run_name))

    def evaluate(self, claim: Claim) -> Outcome:
        """The verdict on one claim by its own reading, from stored numbers."""
        return self.outcomes(claim)[claim.reading]

    def outcomes(self, claim: Claim) -> dict[str, Outcome]:
        """What every reading of a claim says of stored numbers.

        Of the paper's scale if its runs are all stored there, else of the full profile.
        """
        configs = self.stored_configs(claim.all_runs)
        known = store.read_derived(self.name)
        evidence = Evidence(known.numbers, configs, configs, health=known.health)
        verdicts = claim.verdicts(evidence)
        return verdicts | self.at_scale(claim, verdicts)

    def changed(self, params: Params) -> dict[str, tuple[Any, Any]]:
        """Parameters that are not the full profile's -> (their value, the profile's)."""
        full = self.profiles["full"]
        changed = {}
        for name, value in params.items():
            if value != full[name]:
                changed[name] = (value, full[name])
        return changed

    def at_scale(self, claim: Claim, full: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """Outcomes of readings whose runs are all stored in the paper's setting, and say so.

        Only where they say at least as much as those of the full profile; not of readings of which
        that has all runs as the paper has them.
        """
        known = store.read_derived(self.name, PAPER)
        outcomes = {}
        for reading in claim.each:
            paths = {name: store.stored_path(self.name, PAPER, name) for name in reading.runs}
            larger = any(path.parent.name == PAPER for path in paths.values())
            needed = reading.rule.keys()
            measured = all(key in known.numbers for key in needed)
            stored = paths.keys() <= known.runs.keys()
            if not (larger and measured and stored):
                continue
            configs = {name: config_of(path) for name, path in paths.items()}
            evidence = Evidence(known.numbers, configs, configs, health=known.health)
            outcome = reading.judged(evidence, claim.id)
            where = f"at the paper's scale ({setting(configs)})"
            if outcome.parts:
                words = f"{where}: {outcome.measured}"
                outcomes[reading.name] = replace(outcome, profile=PAPER, measured=words)
            elif not full[reading.name].parts:
                words = f"{where} {outcome.reason}"
                outcomes[reading.name] = replace(outcome, profile=PAPER, reason=words)
        return outcomes

    def stored_configs(self, runs: Iterable[str]) -> dict[str, Config]:
        """The configurations of those of some runs that are stored with the full profile."""
        configs: dict[str, Config] = {}
        for name in runs:
            path = store.run_path(self.name, "full", name)
            if archive.exists(path):
                configs[name] = config_of(path)
        return configs


@dataclass
class Page:
    """One execution of a study's notebook; `Study.open` makes it.

    The parameters are attributes: `page.lr` is the step size of the profile, or what was given in
    its place. `run` has the runs, `numbers` and `health` are of the last run.

    Attributes
    ----------
    study, profile, device, recompute : as given to `Study.open`.
    params : the parameters by name.
    edited : the runs of the last `run` that are not as the study declares them, with what differs.
    """

    study: Study
    profile: str
    device: str
    recompute: bool
    params: dict[str, Any]
    edited: dict[str, str] = field(default_factory=dict)
    _traces: dict[str, Trace] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.__dict__.get("params", {}):
            known = ", ".join(self.params)
            raise AttributeError(f"page: parameter must be one of {known}, got {name!r}.")
        return self.params[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("params", {}):
            raise AttributeError(
                f"page: {name} must be changed in the parameters cell, before the page is opened, "
                f"got page.{name} = {value!r:.60}."
            )
        super().__setattr__(name, value)

    def run(
        self, problem: Callable[[int], Problem] | None = None, **algorithms: Algorithm
    ) -> dict[str, Trace]:
        """All runs of the study, those named with the algorithm (and the problem) given.

        What is given as the study declares it is loaded if it is stored. Anything else is computed,
        and so is a run whose class, function or data are not the study's, even if it has the same
        configuration; see `papers.kit.edits`. A line names these runs, and says what differs.

        Parameters
        ----------
        problem : seed -> Problem, of the named runs; None for the study's.
        algorithms : name of a run -> its algorithm. The other runs of the study are as they are.

        Raises
        ------
        ValueError
            if the study has no run of a name, or a problem is given for no run.
        """
        declared = self.study.runs_of(self.params)
        given = self._given(declared, problem, algorithms)
        replaced = snapshot.replaced()
        if replaced:
            self.edited = dict.fromkeys(declared, f"code: {replaced[0]} was replaced")
        else:
            self.edited = edits.of_runs(given, declared)
        print(self.summary(len(declared) - len(self.edited)))
        usual = {name: spec for name, spec in declared.items() if name not in self.edited}
        traces = self._computed(usual, self.recompute)
        specs = declared | given
        edited = {name: specs[name] for name in self.edited}
        traces |= self._computed(edited, recompute=True)
        self._traces = {name: traces[name] for name in declared}
        self.__dict__.pop("numbers", None)
        copies = {}
        for name, trace in self._traces.items():
            copies[name] = replace(trace, metrics={**trace.metrics}, info={**trace.info})
        return copies

    def _given(
        self,
        declared: Mapping[str, Spec],
        problem: Callable[[int], Problem] | None,
        algorithms: Mapping[str, Algorithm],
    ) -> dict[str, Spec]:
        """The declared runs for which an algorithm is given, with that and with the problem."""
        call = f"{self.study.name}.run"
        if problem is not None and not algorithms:
            rule = f"come with the algorithm of a run, such as {next(iter(declared))}=..."
            raise ValueError(checks.sentence(call, "problem", rule, problem))
        known = (*declared, *self.study.specs_of(self.profile))
        given = {}
        for name, algorithm in algorithms.items():
            checks.one_of(call, "name", name, known)
            if name in declared:  # these parameters may leave it out
                spec = declared[name]
                make_problem = problem or spec.problem
                given[name] = replace(spec, algorithm=algorithm, problem=make_problem)
        return given

    def _computed(self, specs: Mapping[str, Spec], recompute: bool) -> dict[str, Trace]:
        """Some runs of the page, from the store or computed."""
        return store.compute_or_load(
            self.study.name,
            self.profile,
            specs,
            recompute=recompute,
            device=self.device,
        )

    @property
    def of_book(self) -> bool:
        """Whether all runs are those of the full profile, which the book's sentences are about."""
        return not self.edited and not self.study.changed(self.params)

    @property
    def of_study(self) -> bool:
        """Whether all runs are those of the full profile, or of the paper's own setting."""
        unchanged = self.params == self.study.resolve(self.profile)
        return self.of_book or (self.profile == PAPER and unchanged and not self.edited)

    def summary(self, count: int) -> str:
        """One line: how many runs are the study's, which are not, and whose the sentences are."""
        base = self.study.resolve(self.profile)
        total = count + len(self.edited)
        line = f"{count} of {total} runs are the study's, profile {self.profile!r}"
        changed = {name: value for name, value in self.params.items() if value != base[name]}
        if changed:
            line += f" with {in_words(changed)}"
        if self.edited:
            edited = "; ".join(self._edited_in_words())
            line += f"; your own: {edited}"
        if self.of_book:
            return f"{line}."
        return f"{line}. {OF_BOOK}"

    def _edited_in_words(self) -> list[str]:
        """The runs that are not the study's, those together that differ in one thing."""
        by_words: dict[str, list[str]] = {}
        for name, words in self.edited.items():
            by_words.setdefault(words, []).append(name)
        sentences = []
        for words, names in by_words.items():
            runs = ", ".join(names) if len(names) <= FEW else f"{len(names)} runs"
            sentences.append(f"{runs} ({words})")
        return sentences

    @property
    def traces(self) -> Traces:
        """The runs of the last `run`; the study's own before there was one.

        Nobody may change them; who changes what `run` returned has changed a copy.
        """
        if not self._traces:
            self.run()
        return MappingProxyType(self._traces)

    @cached_property
    def numbers(self) -> Quantities:
        """The derived numbers of the runs."""
        return self.study.derive(self.traces, self.params)

    def curves(
        self, vary: Sequence[str] = (), defaults: quantities.Defaults | None = None, **fixed: Label
    ) -> pd.DataFrame:
        """The runs as one frame: labels, seed, round, a column a curve; see `quantities.curves`.

        With the study's `defaults`, only the runs that differ from them in the labels of `vary`, or
        have the values of `fixed`; see `quantities.chosen`.

        A label that the study has in none of its runs is refused.
        """
        if defaults is None:
            return quantities.curves(self.traces)
        self.check_labels((*vary, *fixed), defaults)
        runs = quantities.chosen(self.traces, vary, defaults, **fixed)
        return quantities.curves(runs)

    def check_labels(self, labels: Iterable[str], defaults: quantities.Defaults) -> None:
        """Refuse a label that neither the defaults nor a run of the full profile has."""
        known = dict.fromkeys(defaults)
        for spec in self.study.specs_of("full").values():
            known |= dict.fromkeys(spec.labels)
        for label in labels:
            if label not in known:
                rule = f"a label must be one of the study's, got {label!r}"
                raise ValueError(f"{self.study.name}.curves: {rule}; {nearest(label, known)}.")

    @property
    def health(self) -> dict[str, str]:
        """What is wrong with each run, empty where nothing is."""
        return self.study.health(self.traces)

    def verdicts(self, claim: Claim) -> dict[str, Outcome]:
        """The verdict on one claim, by reading, from the runs of the page.

        Where nothing was changed, it is that of the stored runs at the paper's scale if they are
        all there. No claim is judged by a run that a reader changed.
        """
        traces = {name: self.traces[name] for name in claim.all_runs if name in self.traces}
        changed = self.study.changed(self.params)
        evidence = Evidence(
            numbers=self.numbers,
            configs={name: trace.config for name, trace in traces.items()},
            stored=self.study.stored_configs(claim.all_runs),
            changed=changed,
            health=self.study.health(traces),
            edits=self.edited,
        )
        verdicts = claim.verdicts(evidence)
        edited = not self.edited.keys().isdisjoint(claim.all_runs)
        if changed or edited:
            return verdicts
        return verdicts | self.study.at_scale(claim, verdicts)


def setting(configs: Mapping[str, Config]) -> str:
    """The setting of some runs in words: how many rounds and seeds."""
    round_counts = [config["rounds"] for config in configs.values()]
    seed_counts = [len(seeds) for seeds in seeds_of(configs).values()]
    return f"rounds {alternatives(round_counts)}, seeds {alternatives(seed_counts)}"


def alternatives(values: Iterable[int]) -> str:
    """Different values in words: `100 or 200`."""
    different = dict.fromkeys(values)
    return " or ".join(map(str, different))


def in_words(params: Mapping[str, Any]) -> str:
    """Parameters with their values: `lr 0.1, rounds 50`."""
    return ", ".join(f"{name} {value}" for name, value in params.items())
