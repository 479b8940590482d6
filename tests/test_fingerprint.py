"""Which definitions a stored run depends on, and that a change of one of them shows."""

from functools import partial

import pytest
from problems import np_problem

import fedlib as fl
from fedlib import fingerprint
from fedlib.fingerprint import code_digest, definitions, roots_of
from fedlib.problems import neyman_pearson

METHOD = fl.FedSGM(lr=0.1, local_steps=2, participants=3, tolerance=0.05, uplink=fl.TopK(0.1))

LIBRARY = {
    "method": '''
from library import helpers
from library.parts import Part

RATE = 2.0

class Method:
    """What it does."""

    def round(self):
        return helpers.twice(RATE) + Part().size
''',
    "helpers": """
def twice(x):
    return plus(x, x)

def plus(a, b):
    return a + b

def unused():
    return 0
""",
    "parts": "class Part:\n    size = 1\n\nclass Other:\n    size = 2\n",
}


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A little package in the place of fedlib; returns a function that edits one file of it."""
    monkeypatch.setattr(fingerprint, "PACKAGE", tmp_path)
    # file times are too coarse for edits in one test
    monkeypatch.setattr(fingerprint, "_read", fingerprint._read.__wrapped__)

    def edit(name, old="", new=""):
        text = LIBRARY[name].replace("library", "fedlib")
        assert old in text
        (tmp_path / f"{name}.py").write_text(text.replace(old, new, 1))

    for name in LIBRARY:
        edit(name)
    return edit


def test_definitions_are_followed_through_names_modules_and_constants(library):
    assert definitions(["method:Method"]) == {
        "method:Method", "method:RATE", "helpers:twice", "helpers:plus", "parts:Part",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("method", "RATE = 2.0", "RATE = 3.0"),
        ("helpers", "a + b", "a - b"),
        ("parts", "size = 1", "size = 5"),
        ("method", "+ Part", "- Part"),
    ],
)
def test_a_change_of_anything_that_is_reached_shows(library, name, old, new):
    before = code_digest(["method:Method"])
    library(name, old, new)
    assert code_digest(["method:Method"]) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("helpers", "return 0", "return 1"),
        ("parts", "size = 2", "size = 3"),
        ("parts", "class Other", "class New:\n    pass\n\nclass Other"),
        ("method", "What it does.", "Words."),
        ("helpers", "def plus", "# why\ndef plus"),
    ],
)
def test_what_is_not_reached_and_comments_do_not_show(library, name, old, new):
    before = code_digest(["method:Method"])
    library(name, old, new)
    assert code_digest(["method:Method"]) == before


def test_a_root_that_is_gone_shows(library):
    assert code_digest(["parts:Part"]) != code_digest(["parts:Gone"])
    assert code_digest(["parts:Gone"]) != code_digest(["nowhere:Gone"])


def test_the_roots_of_a_run_are_its_algorithm_ingredients_problem_and_maker():
    roots = roots_of(METHOD, np_problem(), partial(neyman_pearson, clients=3))
    assert {"algorithms.fedsgm:FedSGM", "compress:TopK", "switching:Hard"} <= set(roots)
    assert "problems.neyman_pearson:neyman_pearson" in roots
    reached = definitions(roots)
    assert {"sampling:draw_round", "split:stratified_iid", "compress:kept"} <= reached
    assert not any(name.startswith(("compress:RandK", "types:", "checks:")) for name in reached)


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
    assert {"blocks:Blocks", "sparse_sets:L1Ball", "nuclear:NuclearBall"} <= roots
    assert {"blocks:PerClient", "sets:Box", "schedules:Convex", "algorithms.fedfw:FedFW"} <= roots
    assert "nuclear:leading_pair" in definitions(sorted(roots))
