"""A study's files: what was collected is read back to the last bit, from either place."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from fedlib.core.files import digest, read_json, write_json
from papers.kit import archive
from papers.kit.numbers import significant
from tests.helpers import loose
from tests.helpers.expect import refuses
from tests.helpers.process import python

FILES = ["own.json", "own.npz", "own.parquet"]


def numbers(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=2000) * 10.0 ** rng.integers(-320, 300, 2000)
    odd = [0.0, -0.0, float("nan"), 1e-320, 123456.0, 1.0, -0.1]
    return [significant(float(v)) for v in [*x, *odd]]


def stored(results, name, seed=0, profile="full", **more):
    """A run with curves of every kind of number, in a file of its own."""
    row = numbers(seed)
    content = {
        "schema": 1, "kind": "run", "study": "own", "profile": profile, "name": name,
        "seeds": [3, 1], "rounds": [*range(0, 2 * len(row), 2)],
        "metrics": {"f": [row, row[::-1]], "g": [row[::-1], row]},
        "info": {"sigma": [row[1:] + row[:-1]] * 2, "g": [row[:-1] + row[1:]] * 2},
        "final_w": None, "output_w": [row[:3]] * 2, **more,
    }  # fmt: skip
    path = results / "own" / profile / f"{name}.json"
    write_json(path, {**content, "digest": digest(content)})
    return path


def test_what_is_collected_is_read_back_to_the_last_bit(tmp_path):
    paths = [stored(tmp_path, "a"), stored(tmp_path, "b", 1), stored(tmp_path, "a", 2, "paper")]
    before = {path: read_json(path, archive.RUN) for path in paths}
    archive.collect(tmp_path, "own")
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
    for path, held in before.items():
        assert archive.exists(path)
        assert archive.place(path) == tmp_path / "own.json"
        found = loose.plain(archive.read(path))
        assert digest({k: v for k, v in found.items() if k != "digest"}) == held["digest"]
        few = archive.read(path, curves=False)
        assert not {"metrics", "info", "final_w", "output_w", "labels", "values"} & few.keys()
    assert archive.names(paths[0].parent) == {"a", "b"}
    assert not archive.exists(paths[2].with_name("b.json"))


def test_a_file_of_its_own_comes_first_and_is_collected_over_the_old_one(tmp_path):
    path = stored(tmp_path, "a")
    stored(tmp_path, "b", 1)
    archive.collect(tmp_path, "own")
    other = read_json(stored(tmp_path, "a", 3))
    assert archive.place(path) == path
    assert archive.read(path) == other
    kept = loose.plain(archive.read(path.with_name("b.json")))
    archive.collect(tmp_path, "own")
    assert not path.exists()
    assert loose.plain(archive.read(path)) == other
    assert loose.plain(archive.read(path.with_name("b.json"))) == kept
    before = (tmp_path / "own.parquet").read_bytes()
    archive.collect(tmp_path, "own")  # nothing to do
    assert (tmp_path / "own.parquet").read_bytes() == before


def test_what_is_read_is_the_callers_own(tmp_path):
    path = stored(tmp_path, "a", config={"lr": 0.1})
    archive.collect(tmp_path, "own")
    archive.read(path)["config"]["lr"] = 7
    assert archive.read(path)["config"] == {"lr": 0.1}


def test_a_cache_notices_another_file(tmp_path):
    path, seen = stored(tmp_path, "a"), []
    cached = archive.cached(lambda path: seen.append(archive.read(path)["digest"]))
    for _ in range(2):
        cached(path)
    archive.collect(tmp_path, "own")
    cached(path)
    stored(tmp_path, "a", 5)
    cached(path)
    assert len(seen) == 3
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda file: file(".npz").unlink(), "own.npz must be whole"),
        (lambda file: shorten(file(".npz")), "own.npz must be"),
        (lambda file: file(".parquet").unlink(), "own.parquet must be whole"),
        (lambda file: shorten(file(".parquet")), "own.parquet must be"),
        (lambda file: shorten(file(".json")), "complete JSON"),
        (lambda file: file(".json").write_text("{}", "utf-8"), "must agree with its digest"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path, spoil, words):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own")
    spoil((tmp_path / "own.json").with_suffix)
    refuses(f"store: *{words}*", archive.read, path)


def shorten(path):
    path.write_bytes(path.read_bytes()[:-50])


def test_curves_of_another_run_are_refused(tmp_path):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own")
    (tmp_path / "elsewhere").mkdir()
    stored(tmp_path / "elsewhere", "a", seed=1)
    archive.collect(tmp_path / "elsewhere", "own")
    shutil.copy(tmp_path / "elsewhere" / "own.parquet", tmp_path)
    refuses("own.parquet must agree with own.json", archive.read, path)


def test_who_is_killed_between_two_files_leaves_what_was_stored(tmp_path, monkeypatch):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own")
    before = loose.plain(archive.read(path))
    added = stored(tmp_path, "b", 1)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(archive, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            archive.collect(tmp_path, "own")
    assert loose.plain(archive.read(path)) == before
    assert added.is_file()
    archive.collect(tmp_path, "own")
    assert loose.plain(archive.read(path)) == before
    assert archive.names(path.parent) == {"a", "b"}


def test_anybody_reads_the_table_with_pandas(tmp_path):
    path = stored(tmp_path, "a")
    stored(tmp_path, "b", 1)
    labels = {"a": {"method": "FedSGM", "lr": 0.5, "feedback": True}, "b": {"method": "SGM"}}
    archive.collect(tmp_path, "own", {"full": labels})
    table = pd.read_parquet(tmp_path / "own.parquet")
    assert [*table][:7] == ["profile", "run", "method", "lr", "feedback", "seed", "round"]
    assert {*table.loc[table.run == "a", "lr"]} == {0.5}
    assert table.loc[table.run == "b", "lr"].isna().all()
    assert {*table.loc[table.run == "a", "feedback"]} == {True}
    held = archive.read(path)
    for at, seed in enumerate(held["seeds"]):
        rows = table[(table.run == "a") & (table.seed == seed)].set_index("round")
        evaluated = rows.loc[held["rounds"]]
        np.testing.assert_allclose(evaluated.f, held["metrics"]["f"][at], rtol=1e-6)
        np.testing.assert_allclose(
            rows.g_of_round.dropna(),
            [x for x in held["info"]["g"][at] if np.isfinite(x)],
            rtol=1e-6,
        )
    assert archive.labels_of(tmp_path / "own.json") == labels


def test_labels_are_renewed_without_another_run(tmp_path):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own", {"full": {"a": {"method": "SGM"}}})
    before = archive.digest_of(path)
    archive.collect(tmp_path, "own", {"full": {"a": {"method": "FedSGM"}}})
    assert {*pd.read_parquet(tmp_path / "own.parquet").method} == {"FedSGM"}
    assert archive.digest_of(path) == before
    stored(tmp_path, "b")
    archive.collect(tmp_path, "own")
    assert archive.labels_of(tmp_path / "own.json") == {"a": {"method": "FedSGM"}, "b": {}}


def test_what_is_not_there_is_refused(tmp_path):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own")
    refuses("full/c.json must exist", archive.read, path.with_name("c.json"))


def many(results, mine):
    """Store eight runs, collect after each, and read all runs that were stored so far."""
    for number in range(8):
        with archive.exclusive(results):
            path = stored(results, f"run{mine}_{number}", number)
        archive.collect(results, "own")
        for earlier in range(number + 1):
            run = archive.read(path.with_name(f"run{mine}_{earlier}.json"))
            assert run["metrics"]["f"][0].tolist()[-3] == 123456.0


MANY = """
import sys
from pathlib import Path
from tests.papers.kit.test_archive import many
many(Path(sys.argv[1]), int(sys.argv[2]))
"""


def test_processes_that_collect_at_once_all_succeed_and_lose_nothing(tmp_path):
    (tmp_path / "own").mkdir()
    with ThreadPoolExecutor() as pool:
        other = pool.submit(python, "-c", MANY, str(tmp_path), "1")
        deadline = time.monotonic() + 300
        while not archive.names(tmp_path / "own" / "full"):  # until the other process is at work
            assert not other.done(), other.result().stderr
            assert time.monotonic() < deadline
            time.sleep(0.01)
        many(tmp_path, 0)
    assert other.result().returncode == 0, other.result().stderr
    names = {f"run{mine}_{number}" for mine in range(2) for number in range(8)}
    assert archive.names(tmp_path / "own" / "full") == names
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


def test_curves_that_moved_while_a_run_was_read_are_read_again(tmp_path, monkeypatch):
    """Another process collects between the look-up of a run and that of its curves."""
    path = stored(tmp_path, "b")
    archive.collect(tmp_path, "own")
    before, usual, done = loose.plain(archive.read(path)), archive._table, []

    def late(file):
        if not done:
            done.append(stored(tmp_path, "a", 3))  # comes first among the curves
            archive.collect(tmp_path, "own")
        return usual(file)

    monkeypatch.setattr(archive, "_table", late)
    assert loose.plain(archive.read(path)) == before
    assert done
