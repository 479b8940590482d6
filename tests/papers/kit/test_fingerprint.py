"""Which definitions a stored run depends on, and that a change of one of them shows."""

from functools import partial

import pytest
from problems import np_problem

import fedlib as fl
from fedlib.core import files
from fedlib.problems import neyman_pearson
from papers.kit import fingerprint, store
from papers.kit.fingerprint import code_digest, roots_of

METHOD = fl.FedSGM(lr=0.1, local_steps=2, participants=3, tolerance=0.05, uplink=fl.TopK(0.1))

LIBRARY = {
    "fedlib/__init__": "from fedlib.parts import Part\n",
    "fedlib/method": '''
from fedlib import Part, checks, helpers

RATE = 2.0

class Method:
    """What it does."""

    def round(self):
        checks.count("Method", "size", Part.size)
        return helpers.twice(RATE) + Part().size
''',
    "fedlib/helpers": """
def twice(x):
    return plus(x, x)

def plus(a, b):
    return a + b

twice.register(plus)

def unused():
    return 0
""",
    "fedlib/parts": "class Part:\n    size = 1\n\nclass Other:\n    size = 2\n",
    "fedlib/checks": "def count(who, name, value):\n    return LOW\n\nLOW = 1\n",
    "fedlib/rules": "def least(x):\n    return min(x)\n",
    "papers/theory": "def least(x):\n    return max(x)\n",
    "papers/study": """
import fedlib.helpers as tools
import papers.theory
from fedlib.method import *
from fedlib.rules import least

def made(tools_):
    twice = tools_
    return Method(), tools.plus(twice, 1), least(papers.theory.least([1]))
""",
}
STUDY, METHOD_NAME = "papers.study:made", "fedlib.method:Method"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Two little packages in the place of ours; returns a function that edits one file of them."""
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)

    def edit(name, old="", new=""):
        assert old in LIBRARY[name]
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(LIBRARY[name].replace(old, new), encoding="utf-8")
        fingerprint._source.cache_clear()  # file times are too coarse for edits in one test

    for name in LIBRARY:
        edit(name)
    return edit


def definitions(roots):
    return set(fingerprint.source().reached(roots))


def test_definitions_are_followed_through_names_modules_and_constants(library):
    reached = {METHOD_NAME, "fedlib.method:RATE", "fedlib.parts:Part"}
    reached |= {"fedlib.helpers:twice", "fedlib.helpers:plus"}
    assert definitions([METHOD_NAME]) == reached
    reached |= {STUDY, "fedlib.rules:least", "papers.theory:least"}
    assert definitions([STUDY]) == reached


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("fedlib/method", "RATE = 2.0", "RATE = 3.0"),
        ("fedlib/method", "RATE = 2.0", "RATE = 2.0\nRATE += 1"),
        ("fedlib/helpers", "a + b", "a - b"),
        ("fedlib/helpers", "register(plus)", "register(unused)"),
        ("fedlib/parts", "size = 1", "size = 5"),
        ("fedlib/method", "+ Part", "- Part"),
        ("papers/theory", "max", "sum"),
        ("papers/study", "import fedlib.helpers", "import fedlib.method"),
        ("papers/study", "least(papers.theory.least([1]))", "papers.theory.least(least([1]))"),
        ("papers/study", "twice = tools_", "twice = 1"),
    ],
)
def test_a_change_of_anything_that_is_reached_shows(library, name, old, new):
    before = code_digest([STUDY])
    library(name, old, new)
    assert code_digest([STUDY]) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("fedlib/helpers", "return 0", "return 1"),
        ("fedlib/parts", "size = 2", "size = 3"),
        ("fedlib/parts", "class Other", "class New:\n    pass\n\nclass Other"),
        ("fedlib/method", "What it does.", "Words."),
        ("fedlib/method", '        checks.count("Method", "size", Part.size)\n', ""),
        ("fedlib/helpers", "def plus", "# why: ≤\ndef plus"),
        ("fedlib/checks", "LOW = 1", "LOW = 2"),
        ("papers/study", "import fedlib.helpers as tools", "from fedlib import helpers as tools"),
        ("papers/study", "from fedlib.method import *", "from fedlib.method import Method"),
    ],
)
def test_what_is_not_reached_and_how_it_is_imported_do_not_show(library, name, old, new):
    before = code_digest([STUDY])
    library(name, old, new)
    assert code_digest([STUDY]) == before


def test_a_definition_that_moves_is_the_same(library, tmp_path):
    before = code_digest([STUDY])
    text = LIBRARY["fedlib/parts"]
    library("fedlib/parts", text, "from papers.parts import Part\n")
    (tmp_path / "papers" / "parts.py").write_text(text, encoding="utf-8")
    fingerprint._source.cache_clear()
    assert "papers.parts:Part" in definitions([STUDY])
    assert "fedlib.parts:Part" not in definitions([STUDY])
    assert code_digest([STUDY]) == before


def test_a_direct_import_under_another_name_is_the_same(library):
    before = code_digest([STUDY])
    text = LIBRARY["papers/study"].replace("tools.plus(", "add(")
    alias = text.replace("import fedlib.helpers as tools", "from fedlib.helpers import plus as add")
    library("papers/study", LIBRARY["papers/study"], alias)
    assert code_digest([STUDY]) == before


def test_a_folder_may_import_its_own_files(library, tmp_path):
    folder = tmp_path / "papers" / "own"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from papers.own import parts\n\ndef made():\n    return parts.size()\n", encoding="utf-8"
    )
    (folder / "parts.py").write_text("def size():\n    return 1\n", encoding="utf-8")
    fingerprint._source.cache_clear()
    assert definitions(["papers.own:made"]) == {"papers.own:made", "papers.own.parts:size"}


def test_a_package_that_is_not_there_is_no_fault(library, tmp_path):
    before = code_digest([METHOD_NAME])
    (tmp_path / "papers").rename(tmp_path / "others")
    assert code_digest([METHOD_NAME]) == before


def test_a_root_that_is_gone_shows(library):
    assert code_digest(["fedlib.parts:Part"]) != code_digest(["fedlib.parts:Gone"])
    assert code_digest(["fedlib.parts:Gone"]) != code_digest(["fedlib.nowhere:Missing"])
    assert code_digest(["fedlib.parts:Part"]) != code_digest(["nowhere.parts:Part"])


def test_the_roots_of_a_run_are_its_algorithm_ingredients_problem_and_maker():
    roots = roots_of(METHOD, np_problem(), partial(neyman_pearson, clients=3))
    for name in ("algorithms.fedsgm:FedSGM", "compress.compressors:TopK", "steps.switching:Hard"):
        assert f"fedlib.{name}" in roots
    assert "fedlib.problems.neyman_pearson:neyman_pearson" in roots
    reached = definitions(roots)
    for name in (
        "core.sampling:draw_round",
        "data.split:stratified_iid",
        "compress.compressors:kept",
    ):
        assert f"fedlib.{name}" in reached
    others = ("fedlib.compress.compressors:RandK", "fedlib.core.problem:", "fedlib.checks:")
    assert not any(name.startswith(others) for name in reached)


def test_functions_from_elsewhere_are_no_roots():
    def mine(w, batch):
        return w

    problem = np_problem()
    from dataclasses import replace

    roots = roots_of(METHOD, replace(problem, losses=mine))
    assert not any("test_fingerprint" in name for name in roots)


def test_sets_within_a_product_and_sets_of_clients_are_roots():
    product = fl.Blocks((fl.L1Ball(1.0), fl.NuclearBall(1.0, 2, 2)), (26, 4))
    problem = np_problem().within(product)
    method = fl.FedFW(0.1, split=fl.PerClient((fl.Box(1.0),), (0,) * 20))
    roots = set(roots_of(method, problem))
    for name in ("blocks:Blocks", "sparse:L1Ball", "nuclear:NuclearBall", "blocks:PerClient"):
        assert f"fedlib.sets.{name}" in roots
    others = {"fedlib.steps.schedules:Convex", "fedlib.algorithms.fedfw:FedFW"}
    assert {"fedlib.sets.balls:Box", *others} <= roots
    assert "fedlib.sets.nuclear:leading_pair" in definitions(sorted(roots))


def test_nothing_of_ours_that_a_stored_run_names_is_lost():
    """No name in its code is that of a module as a value, or of nothing."""
    now = fingerprint.Source(fingerprint.ROOT)
    stored = [files.read_json(path) for path in store.results_dir().glob("*/full/*.json")]
    roots = {root for run in stored for root in run["provenance"].get("roots", ())}
    reached = now.reached(roots)
    assert len(reached) > 500
    assert all(now.text(name) for name in reached)
    assert now.unknown == set()


def test_plumbing_is_what_is_named_as_such():
    """So that a module of the library does not drop out of the digests by its name."""
    there = {name for name in fingerprint.PLUMBING if fingerprint.source().module(name)}
    assert {name.rpartition(".")[2] for name in there} == {
        "types", "client", "federation", "protocols",
    }  # fmt: skip
    assert len(there) == 4
    assert fingerprint.CHECKS == "fedlib.checks"
