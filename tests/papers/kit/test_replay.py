"""Replaying: the same code gives the same bits, other code others, and a fault is one sentence."""

import shutil

import pytest

from fedlib.core.provenance import ROOT
from papers import STUDIES
from papers.kit.fingerprint import roots_of
from papers.kit.replay import play

NAMES = ("plane_mgda", "plane_scalarized")
RUNS = [("cmoo_toy", "quick", name) for name in NAMES]


@pytest.fixture
def tree(tmp_path):
    """A copy of our packages."""
    for package in ("fedlib", "papers"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=skipped)
    return tmp_path


def test_a_change_shows_in_the_runs_that_it_changes_and_in_no_other(tree):
    path = tree / "fedlib" / "algorithms" / "multiobjective.py"
    text = path.read_text(encoding="utf-8")
    least = "w - self.lr * "  # a step that is a little longer
    head, _, tail = text.partition("class MGDA")
    assert least in tail
    path.write_text(
        head + "class MGDA" + tail.replace(least, least + "(1 + 2**-40) * ", 1), encoding="utf-8"
    )
    here, there = play(ROOT, RUNS, 2), play(tree, [*RUNS, ("gone", "full", "run")], 2)
    specs = STUDIES["cmoo_toy"].specs(STUDIES["cmoo_toy"].resolve("quick"))
    keys = {run: specs[run[2]].key() for run in RUNS}
    assert {run: played.key for run, played in here.items()} == keys
    assert {run: played.key for run, played in there.items()} == keys
    spec = specs[NAMES[0]]
    roots = roots_of(spec.algorithm, spec.problem(spec.seeds[0]), spec.problem)
    assert here[RUNS[0]].roots == there[RUNS[0]].roots == tuple(roots)
    assert [here[run] == there[run] for run in RUNS] == [False, True]


def test_code_that_cannot_compute_the_rounds_is_one_sentence(tmp_path):
    (tmp_path / "fedlib").mkdir()
    (tmp_path / "fedlib" / "__init__.py").write_text(
        "raise TypeError('not today')\n", encoding="utf-8"
    )
    with pytest.raises(ValueError, match=r"^replay: the code in .* must compute .*not today\.$"):
        play(tmp_path, RUNS, 1)
