"""What a reader edits in the experiment of a page is computed and never taken for the book's."""

from dataclasses import dataclass, fields, replace
from functools import partial

import pytest

import fedlib
import fedlib.algorithms.fedsgm
from fedlib import FedAvg, data
from fedlib.compress import RandK
from fedlib.core.client import Client
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard
from papers import STUDIES
from papers.arena import problems as arena_problems
from papers.fedcmoo.data.pairs import MNIST_SCALE
from papers.fedsgm.np_workshop import quantities as workshop
from papers.fedsgm.np_workshop import runs as workshop_runs
from papers.kit import edits, report, snapshot, store
from papers.ssca import common
from tests.helpers.expect import refuses

STUDY = STUDIES["np_workshop"]
SPEC = STUDY.specs(STUDY.resolve("full"))["hard"]
DECLARED = replace(SPEC, seeds=SPEC.seeds[:4])
HARD = DECLARED.algorithm
RUNS = len(STUDY.specs(STUDY.resolve("full")))
ABOUT = {"data": "breast_cancer", "positive": "malignant"}
NOT_OURS = {"not judged: not the book's runs"}

#: Asked for once: each of the problems below reads it.
TABLE = data.breast_cancer("malignant")


def problem(seed):
    """The page's own function."""
    return neyman_pearson(
        TABLE.X,
        TABLE.y,
        clients=10,
        seed=seed,
        config=ABOUT,
    )


def with_rows(change):
    """The page's function with other rows."""

    def changed(seed):
        X, y = change(TABLE.X, TABLE.y)
        return neyman_pearson(
            X,
            y,
            clients=10,
            seed=seed,
            config=ABOUT,
        )

    return changed


def with_field(name, change):
    """The page's function whose problems have another value of a field."""

    def changed(seed):
        usual = problem(seed)
        return replace(usual, **{name: change(usual)})

    return changed


def copied(record_type, record):
    """A record of another class with the same fields."""
    return record_type(**{f.name: getattr(record, f.name) for f in fields(record)})


def pasted():
    @dataclass(frozen=True)
    class FedSGM(fedlib.FedSGM):
        def round(self, fed, state, draw):
            reached, info = super().round(fed, state, draw)
            return reached._replace(w=state.w), info

    return copied(FedSGM, HARD)


def pasted_compressor():
    class RandK(fedlib.RandK):
        def __call__(self, *arguments):
            return 2 * super().__call__(*arguments)

    return replace(HARD, uplink=copied(RandK, HARD.uplink))


ALGORITHMS = {
    "a pasted class of the same name": (pasted(), "code: pasted.<locals>.FedSGM of "),
    "a compressor of the same name": (pasted_compressor(), "code: pasted_compressor.<"),
    "another step": (replace(HARD, lr=0.1), "parameter: lr 0.1, not 0.3"),
    "another method": (FedAvg(0.3, 10, 5), "parameter: type 'FedAvg', not 'FedSGM'"),
}

PROBLEMS = {
    "ten features": (with_rows(lambda X, y: (X[:, :10], y)), "data of seed 8100"),
    "three splits": (lambda seed: problem(8100 + (seed - 8100) % 3), "data of seed 8103"),
    "another start": (with_field("w0", lambda p: p.w0 + 1), "w0 of seed 8100"),
}


def difference(algorithm=HARD, make_problem=problem):
    """What is said of the hard run with these; nothing if they are the study's."""
    spec = replace(DECLARED, algorithm=algorithm, problem=make_problem)
    return edits.of_runs({"hard": spec}, {"hard": DECLARED}).get("hard", "")


@pytest.mark.parametrize("edit", ALGORITHMS)
def test_another_algorithm_is_said(edit):
    algorithm, words = ALGORITHMS[edit]
    assert difference(algorithm).startswith(words)


@pytest.mark.parametrize("edit", PROBLEMS)
def test_other_data_are_said(edit):
    make_problem, words = PROBLEMS[edit]
    assert f"data: problem.{words}" in difference(make_problem=make_problem)


def test_another_function_of_the_problem_is_said():
    doubled = with_field("losses", lambda p: lambda w, batch: 2 * p.losses(w, batch))
    assert "code: problem.losses" in difference(make_problem=doubled)


UNEDITED = {
    "the page's function": problem,
    "the study's function": workshop_runs.problem,
    "a function around it": lambda seed: workshop_runs.problem(seed),
    "bound": partial(workshop_runs.problem),
    "other names for the same rows": with_rows(lambda X, y: (X + 0, y)),
}


@pytest.mark.parametrize("form", UNEDITED)
def test_what_gives_the_stored_data_is_no_edit(form):
    assert difference(replace(HARD, lr=0.3), UNEDITED[form]) == ""


def test_fields_that_share_an_object_are_no_edit():
    sharing = RandK(0.5)
    shared = replace(HARD, uplink=sharing, downlink=sharing)
    separate = replace(HARD, uplink=RandK(0.5), downlink=RandK(0.5))
    assert edits.is_same(shared, separate)
    assert not edits.is_same(shared, replace(separate, downlink=RandK(0.6)))


class Computed(Exception):
    """Runs were computed."""


@pytest.fixture
def page(monkeypatch):
    """The page in its full profile, which may load and must not compute."""

    def computed(group, *_, **__):
        raise Computed(*group)

    monkeypatch.setattr(store, "compute", computed)
    return STUDY.open("full", device="cpu")


def test_an_edited_run_is_computed_and_the_line_says_what_it_is(page, capsys):
    with pytest.raises(Computed, match="hard"):
        page.run(problem, hard=replace(HARD, lr=0.1))
    line = capsys.readouterr().out
    assert line.startswith(
        f"{RUNS - 1} of {RUNS} runs are the study's, profile 'full'; your own: hard ("
    )
    assert "parameter: lr 0.1, not 0.3" in line
    assert line.endswith(
        "The result above, and the sentences and captions below, are about the book's runs.\n"
    )


def test_a_run_without_an_edit_is_loaded(page, capsys):
    traces = page.run(problem, hard=replace(HARD, lr=0.3))
    assert capsys.readouterr().out == f"{RUNS} of {RUNS} runs are the study's, profile 'full'.\n"
    assert traces["hard"].provenance == STUDY.payload("hard")["provenance"]


REPLACED = {
    "a method": (fedlib.FedSGM, "round"),
    "a method that was inherited": (fedlib.FedSGM, "draw"),
    "a function that the library calls": (fedlib.algorithms.fedsgm, "check_work"),
    "the problem of a study": (workshop_runs, "breast_cancer"),
}


@pytest.mark.parametrize("name", REPLACED)
def test_code_of_ours_that_was_replaced_is_named(name, monkeypatch):
    owner, attribute = REPLACED[name]
    usual = getattr(owner, attribute)
    monkeypatch.setattr(owner, attribute, lambda *a, **k: usual(*a, **k), raising=False)
    assert {name.rpartition(".")[2] for name in snapshot.replaced()} == {attribute}
    monkeypatch.undo()
    assert snapshot.replaced() == []


def test_where_our_code_was_replaced_no_run_is_loaded(page, monkeypatch, capsys):
    usual = fedlib.FedSGM.round
    monkeypatch.setattr(fedlib.FedSGM, "round", lambda *arguments: usual(*arguments))
    with pytest.raises(Computed):
        page.run()
    line = capsys.readouterr().out
    assert line.startswith(
        f"0 of {RUNS} runs are the study's, profile 'full'; your own: {RUNS} runs (code:"
    )
    assert ".round was replaced)" in line


def test_a_constant_and_the_body_of_a_function_count_as_code(monkeypatch):
    monkeypatch.setattr(workshop, "LATE", 0.5)
    monkeypatch.setitem(common.STEPS, 10, common.STEPS[100])
    monkeypatch.setattr(Hard.__call__, "__code__", (lambda _, z: z).__code__)
    assert snapshot.replaced() == [
        "fedlib.steps.switching.Hard.__call__",
        "papers.fedsgm.np_workshop.quantities.LATE",
        "papers.ssca.common.STEPS",
    ]


def test_a_record_and_a_function_that_remembers_count_as_code(monkeypatch):
    monkeypatch.setattr(arena_problems, "people", lambda: None)  # it was decorated with `cache`
    monkeypatch.setattr(fedlib.Problem, "gradient", "another default")
    monkeypatch.setattr(Client, "rows", property(lambda _: None))
    field = fields(MNIST_SCALE)[0].name
    usual = getattr(MNIST_SCALE, field)
    object.__setattr__(MNIST_SCALE, field, 9.0)
    names = snapshot.replaced()
    object.__setattr__(MNIST_SCALE, field, usual)
    assert {
        "papers.arena.problems.people",
        "papers.fedcmoo.data.pairs.MNIST_SCALE",
        "fedlib.core.problem.Problem.gradient",
        "fedlib.core.client.Client.rows",
    } <= {*names}
    monkeypatch.undo()
    assert snapshot.replaced() == []


def test_an_argument_of_a_foreign_class_is_not_the_studys():
    study = STUDIES["fw_lowrank"]
    declared = study.specs(study.resolve("full"))["messages_l1"]

    class L1Ball(fedlib.sets.L1Ball):
        pass

    options = {**declared.problem.keywords, "convex_set": L1Ball(10.0)}
    foreign = replace(declared, problem=partial(declared.problem.func, **options))
    assert foreign.key() == declared.key()  # a configuration knows names alone
    (words,) = edits.of_problem(foreign, declared)
    assert words.startswith("code: ")


def test_a_problem_for_no_run_is_refused(page):
    refuses("np_workshop.run: problem must come with the algorithm of a run", page.run, problem)


def test_an_edited_run_judges_nothing(monkeypatch):
    runs = STUDY.load()
    edited = replace(runs["soft"], config=runs["hard"].config)
    usual = store.compute_or_load

    def without_computing(study, profile, specs, recompute=False, **options):
        if recompute:
            return dict.fromkeys(specs, edited)
        return usual(study, profile, specs, **options)

    monkeypatch.setattr(store, "compute_or_load", without_computing)
    page = STUDY.open("full", device="cpu")
    page.run(problem, hard=pasted())
    assert {*report.paper_table(page)["status"]} == NOT_OURS
    table = report.claims_table(page)
    for claim in STUDY.claims:
        names = [name for name in table.index if name.partition(":")[0] == claim.id]
        for reading, name in zip(claim.each, names, strict=True):
            if "hard" in reading.runs:
                assert table["verdict"][name] == "not judged"
                assert "hard is your own (code: pasted.<locals>.FedSGM" in table["why"][name]
    assert table["verdict"]["fedsgm/P1"] != "not judged"


def test_what_is_done_to_the_traces_of_a_run_is_done_to_a_copy():
    page = STUDY.open("full", device="cpu")
    traces = page.run()
    usual = page.traces["hard"].metrics["f"]
    with pytest.raises(ValueError, match="read-only"):
        traces["hard"].metrics["f"][:] = 0.0
    traces["hard"].metrics["f"] = traces["soft"].metrics["f"]
    traces["hard"] = traces["soft"]
    assert page.traces["hard"].metrics["f"] is usual
    with pytest.raises(TypeError, match="item assignment"):
        page.traces["hard"] = traces["soft"]


def test_data_changed_in_place_are_the_readers():
    study = STUDIES["np_unified"]
    declared = study.specs(study.resolve("full"))["hard"]
    first_seed, second_seed, *_ = declared.seeds

    def altered(seed):
        made_anew = declared.problem(seed)
        made_anew.data[0][0] += 1.0
        return made_anew

    words = edits.of_problem(replace(declared, problem=altered), declared)
    assert words == [f"data: problem.data of seed {first_seed}"]
    untouched = declared.problem(first_seed)  # the study's own runs have the data as they were
    words = edits.of_problem(replace(declared, problem=lambda _: untouched), declared)
    assert words[0].endswith(f"of seed {second_seed}")


def test_a_parameter_is_not_set_on_the_page(page):
    with pytest.raises(AttributeError, match="rounds must be changed in the parameters cell"):
        page.rounds = 7


@pytest.mark.parametrize("options", [{"profile": "quick"}, {"recompute": True}])
def test_an_edit_is_said_in_every_profile(options, monkeypatch, capsys):
    any_run = STUDY.load()["hard"]
    monkeypatch.setattr(
        store, "compute_or_load", lambda *arguments, **_: dict.fromkeys(arguments[2], any_run)
    )
    page = STUDY.open(**options, device="cpu")
    page.run(problem, hard=pasted())
    total = len(STUDY.specs(page.params))
    assert f"{total - 1} of {total} runs are the study's" in capsys.readouterr().out
    page.run(problem, hard=STUDY.specs(page.params)["hard"].algorithm)
    assert f"{total} of {total} runs are the study's" in capsys.readouterr().out


def test_changed_parameters_give_no_status():
    page = STUDY.open("full", device="cpu", tolerance=0.05)
    page._traces = STUDY.load()
    assert {*report.paper_table(page)["status"]} == NOT_OURS
