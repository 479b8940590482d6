"""The book's status page, in small builds with made-up notebooks and results."""

import json
import re
import sys

import jupytext
import pytest
import test_book_ext
import toy_book

build = test_book_ext.build


@pytest.fixture
def notebook(build, tmp_path, driver):
    """Writes a source and what its two executions left, which are no pages of the small build."""
    assert build  # whose configuration is there
    with (tmp_path / "conf.py").open("a", encoding="utf-8") as configuration:
        configuration.write('\nexclude_patterns.append("notebooks")\n')

    def make(name, *, executed=True, changed=False, day="2026-02-03"):
        source = tmp_path / "notebooks" / "src" / f"{name}.py"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"# %%\nprint({name!r})\n", encoding="utf-8")
        digest = sys.modules["stamping"].source_digest(jupytext.read(source, fmt="py:percent"))
        for folder, profile in (("executed", "full"), ("quick", "quick")):
            ran = {"date": day, "device": "cpu", "wall_s": 12.0, "cpu_s": 9.0}
            record = {"digest": digest, "profile": profile, "ran": ran}
            path = tmp_path / "notebooks" / folder / f"{name}.ipynb"
            path.parent.mkdir(exist_ok=True)
            if executed:
                path.write_text(json.dumps({"metadata": {"fedlib": record}}), encoding="utf-8")
        if changed:
            source.write_text("# %%\nprint('something else')\n", encoding="utf-8")

    return make


def store_runs(tmp_path, *names):
    for name in names:
        run = toy_book.stored_run(name)
        run["provenance"] = {**run["provenance"], "date": "2026-02-02", "wall_s": 1800.0}
        toy_book.seal(tmp_path / "results" / "toy" / "full" / f"{name}.json", run)


def table(page):
    """The words of every line of the table."""
    (body,) = re.findall(r"<table[^>]*status.*?</table>", page, flags=re.S)
    rows = [re.findall(r"<td>(.*?)</td>", row, flags=re.S) for row in body.split("<tr")]
    return [[" ".join(re.sub(r"<[^>]*>", " ", c).split()) for c in row] for row in rows if row]


def words(page):
    return re.search(r'<p class="status-summary">(.*?)</p>', page, flags=re.S)[1]


def test_what_is_up_to_date_is_in_order(build, notebook, tmp_path):
    notebook("toy")
    notebook("note_a")
    store_runs(tmp_path, "old", "new")
    status, messages, page = build("```{status}\n```")
    assert status == 0, messages
    study, note, total = table(page)
    assert study == [
        "toy", "study", "in order", "2026-02-03", "full, cpu", "12", "12", "2", "1",
        "2026-02-02, cpu", "1.00", "0123456+",
    ]  # fmt: skip
    assert note[:7] == ["note_a", "note", "in order", "2026-02-03", "full, cpu", "12", "12"]
    assert total == ["All", "2", "2 in order", "", "", "24", "24", "2", "1", "", "1.00", ""]
    assert words(page) == (
        "2 of 2 notebooks are in order. 2 runs are stored. What was recorded took: the quick "
        "notebooks 0.3 minutes of CPU time, the pages 0.3 minutes of CPU time, the stored runs "
        "1.00 hours."
    )


def test_what_is_amiss_stands_first(build, notebook, tmp_path):
    notebook("cook")
    notebook("note_a", changed=True)
    notebook("note_b", executed=False)
    notebook("toy", day="2026-02-01")
    (tmp_path / "results" / "toy" / "full" / "new.json").unlink()
    store_runs(tmp_path, "old")
    status, messages, page = build("```{status}\n```")
    assert status == 0, messages
    assert [line[:3] for line in table(page)] == [
        ["toy", "study", "1 of 2 runs not stored page older than its runs"],
        ["note_a", "note", "page of another source quick notebook of another source"],
        ["note_b", "note", "page not executed quick notebook not executed"],
        ["cook", "tutorial", "in order"],
        ["All", "4", "1 in order"],
    ]  # fmt: skip
    assert "1 of 4 notebooks are in order; not so: toy, note_a, note_b. 1 runs are" in words(page)


def test_a_changed_digit_stops_the_build(build, notebook, tmp_path):
    notebook("toy")
    store_runs(tmp_path, "old", "new")
    path = tmp_path / "results" / "toy" / "full" / "new.json"
    path.write_text(path.read_text(encoding="utf-8").replace("2.0", "2.5"), encoding="utf-8")
    status, messages, _ = build("```{status}\n```")
    assert status != 0
    assert "toy/full/new.json must agree with its digest" in messages


def test_what_was_computed_again_is_told_by_study(build, tmp_path):
    stored = tmp_path / "results" / "toy" / "full" / "numbers.json"
    marks = {"old": "a mark", "new": "another", "third": "a third"}
    toy_book.seal(stored, {**toy_book.NUMBERS, "runs": marks})
    seen = {"of": 30, "seeds": [0, 1], "date": "2026-02-02", "commit": "0123456789ab"}
    last = {**seen, "date": "2026-02-03", "difference": 2e-6}
    runs = {
        "toy/old": {**last, "rounds": 30, "mark": "a mark"},
        "toy/new": {**seen, "rounds": 15, "mark": "another"},
        "toy/third": {**seen, "rounds": 30, "mark": "of the run before"},
    }
    toy_book.seal(tmp_path / "results" / "recheck.json", {"kind": "recheck", "runs": runs})
    status, messages, page = build("```{rechecked}\n```")
    assert status == 0, messages
    assert (
        "last recomputed at commit 0123456789ab on 2026-02-03, 2 of 3 runs, largest relative "
        "difference 2e-06; 1 of them to the end"
    ) in page
    cells = [re.sub("<.*?>", "", c) for c in re.findall(r"<td>.*?</td>", page, flags=re.S)]
    assert cells == ["toy", "3", "2", "1", "75 %", "third"]
