"""Loading a stored run says which source files changed since; nothing else depends on them."""

import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedlib import FedSGM, TopK
from fedlib.provenance import ROOT
from papers import STUDIES
from papers.fedsgm.np_workshop import problem
from papers.kit import sources
from tests.helpers import stored
from tests.helpers.process import python

METHOD = "fedlib/algorithms/fedsgm.py"
SGM = FedSGM(lr=0.1, local_steps=1, participants=4, tolerance=0.1)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A study of two short runs, stored, and the sources in a copy that the test may change."""
    study = STUDIES["np_workshop"]

    def two(params):
        specs = study.specs({**params, "rounds": 4, "seeds": (0, 1)})
        return {name: specs[name] for name in ("hard", "soft")}

    for name in sources.sources_of(two(study.resolve("full"))["hard"].algorithm, problem):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path / "results"))
    made = replace(study, specs=two, derive=lambda *_: {}, claims=())
    made.reproduce("full", device="cpu", recompute=False)
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    sources._say.cache_clear()
    return made


def change(tmp_path, line="CHANGED = True"):
    with (tmp_path / METHOD).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def test_a_docstring_or_a_comment_is_not_code(tmp_path):
    def of(*lines):
        path = tmp_path / "code.py"
        path.write_text("\n".join(lines), encoding="utf-8")
        return sources.code_digest(path)

    plain = of("def f(x):", "    return x")
    assert (
        of(
            '"""Text."""',
            "def f(x):",
            '    """What',
            '    f does."""',
            "    # a remark",
            "    return x",
        )
        == plain
    )
    assert of("def f(x):", "    return -x") != plain
    assert of("def f(x):", '    """What f does."""', "    return x, 1") != plain
    assert of("def f(x):", '    return """What f does."""') != plain


def test_the_sources_of_a_run_are_those_of_its_algorithm_ingredients_and_problem():
    found = sources.sources_of(replace(SGM, uplink=TopK(0.1)), partial(problem))
    assert {*found} == {
        *(METHOD, "fedlib/compress/compressors.py", "fedlib/steps/local.py"),
        *("fedlib/steps/switching.py", "papers/fedsgm/np_workshop/__init__.py"),
    }
    assert all(len(digest) == 64 for digest in found.values())
    assert not sources.changed(found)
    assert sources.changed({METHOD: "0" * 64, "fedlib/gone.py": "0" * 64}) == [
        METHOD, "fedlib/gone.py"
    ]  # fmt: skip
    assert sources.sources_of(SGM, lambda _: None).keys() < found.keys()


def test_a_changed_file_is_said_in_one_sentence_and_recomputing_gives_other_numbers(
    small, tmp_path, monkeypatch, capsys
):
    before = small.open("full").run()
    assert not capsys.readouterr().err
    change(tmp_path)
    after = small.open("full").run()
    commit = after["hard"].provenance["commit"]
    assert capsys.readouterr().err == (
        f"np_workshop: {METHOD} has changed since 2 of 2 runs were stored at commit {commit}; "
        "recompute=True computes them anew.\n"
    )
    small.load()
    assert not capsys.readouterr().err  # once a process
    np.testing.assert_array_equal(before["hard"].metrics["f"], after["hard"].metrics["f"])
    usual = FedSGM.round
    monkeypatch.setattr(FedSGM, "round", lambda *args: (args[2], usual(*args)[1]))
    anew = small.open(recompute=True).run()
    assert not np.allclose(before["hard"].metrics["f"], anew["hard"].metrics["f"])


def test_another_text_is_said_and_changes_nothing_else(small, tmp_path, capsys):
    assert stored.faults(small) == []
    change(tmp_path)
    assert stored.faults(small) == []
    assert small.load()
    assert METHOD in capsys.readouterr().err


OWN = """
from fedlib import FedSGM
from papers.fedsgm.np_workshop import problem
from papers.kit.sources import sources_of
class Own(FedSGM):
    pass
print(*sources_of(Own(lr=0.1, local_steps=1, participants=4, tolerance=0.1), problem))
"""


def test_a_method_of_a_notebook_has_no_file():
    done = python("-c", OWN)
    assert "papers/fedsgm/np_workshop/__init__.py" in done.stdout.split(), done.stderr
    assert METHOD not in done.stdout
