"""The mutations themselves: what is changed, what is left alone, and what becomes of a mutant."""

import shutil
import tomllib

import covering
import mutating
import mutations
import pytest
from judging import ROOT

PATH = "fedlib/steps/switching.py"
TESTS = "tests/fedlib/steps/test_switching.py"
SOURCE = '''"""1 + 1 in words."""
from math import floor


@dataclass(frozen=True)
class A:
    """0 < 1."""

    x: int | None = 3

    def f(self, a: int = 2, *, b: bool = True) -> int | None:
        checks.count("A", "x", self.x, low=5)
        if not b and a <= 4:
            raise ValueError(f"A: x must be above {1 + 1}.")
        for one, two in zip(a, b, strict=True):
            self.table["name"] += min(one, -two)
        return self.g(a, b)[: len(a)]
'''
AFTER = {
    "x: int | None = 4", "x: int | None = 2",
    "def f(self, a: int = 3, *, b: bool = True) -> int | None:",
    "def f(self, a: int = 1, *, b: bool = True) -> int | None:",
    "def f(self, a: int = 2, *, b: bool = False) -> int | None:",
    'checks.count("A", "x", self.x, low=6)', 'checks.count("A", "x", self.x, low=4)',
    "if b and a <= 4:", "if not b or a <= 4:", "if not b and a < 4:", "if not b and a > 4:",
    "if (not (not b and a <= 4)):", "if not b and a <= 5:", "if not b and a <= 3:",
    "for one, two in zip(b, a, strict=True):",
    'self.table["name"] -= min(one, -two)', 'self.table["name"] += max(one, -two)',
    'self.table["name"] += min(one, two)', 'self.table["name_"] += min(one, -two)',
    "return self.g(b, a)[: len(a)]", "return self.g(a, b)[: len(a) - 1]",
}  # fmt: skip


def test_every_kind_of_change_is_found_and_words_are_left_alone():
    found = mutating.changes("a.py", SOURCE)
    assert {one.after.strip() for one in found} == AFTER
    for one in found:
        compile(one.of(SOURCE), "a.py", "exec")


def test_a_draw_follows_its_seed_and_other_lines_do_not_move_it():
    found = mutating.changes("a.py", SOURCE)
    drawn = [one.after for one in mutating.draw(found, 4, seed=1)]
    assert len(drawn) == 4
    assert drawn != [one.after for one in mutating.draw(found, 4, seed=2)]
    longer = mutating.changes("a.py", f"import this\n\n{SOURCE}")
    assert [one.after for one in mutating.draw(longer, 4, seed=1)] == drawn


def test_what_is_listed_as_equivalent_says_why_and_is_a_change_that_is_there():
    held = tomllib.loads(mutations.EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    for one in held:
        assert len(one["why"]) > 20
        found = mutating.changes(one["path"], (ROOT / one["path"]).read_text(encoding="utf-8"))
        assert any(
            (c.text.strip(), c.after.strip()) == (one["before"], one["after"]) for c in found
        )


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy with one module's tests, and a chart as if they executed all its lines."""
    copied = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "fedlib", tmp_path / "fedlib", ignore=copied)
    (tmp_path / TESTS).parent.mkdir(parents=True)
    shutil.copy2(ROOT / TESTS, tmp_path / TESTS)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib\n", encoding="utf-8"
    )
    names = [TESTS]
    lines = {str(line): names for line in range(1, 100)}
    chart = {"tests": {TESTS: 1.0}, "lines": {PATH: lines}}
    monkeypatch.setattr(covering, "chart_of", lambda _: chart)
    monkeypatch.setattr(covering, "new_tests", lambda *_: [])
    monkeypatch.setattr(covering, "LIBRARIES", ("torch",))
    return tmp_path


def test_a_mutant_is_killed_and_the_same_program_survives(tree):
    source = (ROOT / PATH).read_text(encoding="utf-8")
    found = mutating.changes(PATH, source)
    (bad,) = (one for one in found if "(z >= 0)" in one.after)
    (place,) = (i for i, line in enumerate(source.splitlines(), 1) if "clamp" in line)
    same = mutating.Change(PATH, place, 0, 4, "    ", source.splitlines()[place - 1])
    with covering.Runner(tree) as run:
        killed, survived = (mutations.judged(one, tree, run) for one in (bad, same))
    assert (killed.kind, survived.kind) == ("good", "accepted")
    assert "test_hard_is_the_indicator" in killed.said
    assert (tree / PATH).read_text(encoding="utf-8") == source
