"""A study of one's own is one folder: found, computed, judged, and registered nowhere."""

import importlib
import sys

import pytest

import papers
from papers.kit import report
from tests.helpers.expect import refuses

STUDY = '''
"""Does FedSGM keep the level with fewer local steps?"""

from fedlib import FedSGM, data
from fedlib.problems import neyman_pearson
from papers.kit.claims import Claim
from papers.kit.numbers import mean
from papers.kit.parameters import parameters
from papers.kit.quantities import Quantities, by_name, of_runs
from papers.kit.rules import Rule, of
from papers.kit.store import Spec
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("seeds", (0, 1, 2)),
    rounds=("communication rounds T", 12, 6),
    steps=("local steps E", (1, 2)),
)
DEFAULTS = {"E": None}


def problem(seed):
    """Breast cancer on four clients."""
    table = data.breast_cancer()
    return neyman_pearson(table.X, table.y, clients=4, seed=seed, config={"data": "breast_cancer"})


def specs(p):
    """One run for each number of local steps."""
    runs = []
    for steps in p["steps"]:
        method = FedSGM(lr=0.3, local_steps=steps, participants=4, tolerance=0.3)
        labels = {"E": steps}
        runs.append(Spec(method, problem, p["rounds"], tuple(p["seeds"]), labels=labels))
    return by_name(runs, DEFAULTS)


def derive(traces, p):
    """Late objective and constraint."""
    late = lambda trace: {name: mean(trace.late(name)) for name in "fg"}
    return Quantities.of([of_runs(traces, late)], DEFAULTS)


CLAIM = Claim(
    id="own/C1",
    paper="ours",
    place="nowhere",
    wording="More local steps bring the objective down faster, and both keep the level.",
    rule=Rule({"faster": of("f", E=2) < of("f", E=1), "level kept": of("g", E=2) <= 0.4}),
    runs=("E1", "E2"),
)
STUDY = Study(
    name="own", title="Local steps", paper="all", specs=specs, derive=derive, claims=(CLAIM,),
    **PARAMETERS,
)
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The study's folder beside those of `papers`, with results of its own."""
    assert papers.STUDIES  # listed before there is one more folder
    folder = tmp_path / "own_study"
    folder.mkdir()
    (folder / "__init__.py").write_text(STUDY, encoding="utf-8")
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "results"))
    yield next(study for study in papers.list_studies() if study.name == "own")
    sys.modules.pop("papers.own_study")
    importlib.invalidate_caches()


def test_a_folder_is_a_study(own):
    assert own.name not in papers.STUDIES
    assert own.reproduce("full", device="cpu", recompute=False)
    assert own.evaluate(CLAIM := own.claims[0]).verdict == "reproduced"
    assert CLAIM.rule.words == "(1) `f (E = 2)` below `f (E = 1)`; (2) `g (E = 2)` at most 0.4."
    quick = own.open("quick")
    quick.run()
    table = report.claims_table(quick)
    assert list(table["verdict"]) == ["not judged"]
    assert "rounds 6, the paper's setting 12" in table["why"].iloc[0]


def test_two_studies_of_one_name_are_refused(own, monkeypatch, tmp_path):
    (tmp_path / "another").mkdir()
    (tmp_path / "another" / "__init__.py").write_text(STUDY, encoding="utf-8")
    refuses("names of studies must differ, got twice: own", papers.list_studies)
