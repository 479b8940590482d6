"""A study's files: what was collected is read back to the last bit, from either place."""

import shutil

import numpy as np
import pandas as pd
import pytest

from fedlib.core.files import digest, read_json, write_json
from papers.kit import archive
from papers.kit.numbers import significant
from tests.helpers import loose
from tests.helpers.expect import refuses
from tests.helpers.process import forked, status_of

FILES = ["own.json", "own.npz", "own.parquet"]
CURVES = {"metrics", "info", "final_w", "output_w"}


def numbers(seed):
    """Numbers of all sizes, and odd ones at the end."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=400) * 10.0 ** rng.integers(-320, 300, 400)
    odd = [0.0, -0.0, float("nan"), 1e-320, 123456.0, 1.0, -0.1]
    return [significant(float(v)) for v in [*x, *odd]]


def stored(results, name, seed=0, profile="full", **entries):
    """A run with curves of every kind of number, in a file of its own."""
    row = numbers(seed)
    reverse = row[::-1]
    content = {
        "schema": 1,
        "kind": "run",
        "study": "own",
        "profile": profile,
        "name": name,
        "seeds": [3, 1],
        "rounds": [*range(0, 2 * len(row), 2)],
        "metrics": {"f": [row, reverse], "g": [reverse, row]},
        "info": {"sigma": [row[1:] + row[:-1]] * 2, "g": [row[:-1] + row[1:]] * 2},
        "final_w": None,
        "output_w": [row[:3]] * 2,
        **entries,
    }
    path = results / "own" / profile / f"{name}.json"
    write_json(path, {**content, "digest": digest(content)})
    return path


def content_of(path):
    """A stored run with lists in the places of arrays."""
    return loose.plain(archive.read(path))


def test_what_is_collected_is_read_back_to_the_last_bit(tmp_path):
    paths = [
        stored(tmp_path, "a"),
        stored(tmp_path, "b", 1),
        stored(tmp_path, "a", 2, "paper"),
    ]
    runs = {path: read_json(path, archive.RUN) for path in paths}
    archive.collect(tmp_path, "own")
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
    for path, run in runs.items():
        assert archive.exists(path)
        assert archive.place(path) == tmp_path / "own.json"
        content = content_of(path)
        content.pop("digest")
        assert digest(content) == run["digest"]
        assert not CURVES & archive.summary(path).keys()
    assert archive.names(paths[0].parent) == {"a", "b"}
    assert not archive.exists(paths[2].with_name("b.json"))


def test_a_file_of_its_own_comes_first_and_is_collected_over_the_old_one(tmp_path):
    path = stored(tmp_path, "a")
    neighbour = stored(tmp_path, "b", 1)
    archive.collect(tmp_path, "own")
    newer = read_json(stored(tmp_path, "a", 3))
    assert archive.place(path) == path
    assert archive.read(path) == newer
    kept = content_of(neighbour)
    archive.collect(tmp_path, "own")
    assert not path.exists()
    assert content_of(path) == newer
    assert content_of(neighbour) == kept
    table = (tmp_path / "own.parquet").read_bytes()
    archive.collect(tmp_path, "own")  # nothing to do
    assert (tmp_path / "own.parquet").read_bytes() == table


def test_what_is_read_is_the_callers_own(tmp_path):
    path = stored(tmp_path, "a", config={"lr": 0.1})
    archive.collect(tmp_path, "own")
    archive.read(path)["config"]["lr"] = 7
    assert archive.read(path)["config"] == {"lr": 0.1}


def test_a_cache_notices_another_file(tmp_path):
    digests = []
    path = stored(tmp_path, "a")
    cached = archive.cached(lambda path: digests.append(archive.read(path)["digest"]))
    cached(path)
    cached(path)
    archive.collect(tmp_path, "own")
    cached(path)
    stored(tmp_path, "a", 5)
    cached(path)
    assert len(digests) == 3
    assert digests[0] == digests[1] != digests[2]


def shorten(path):
    path.write_bytes(path.read_bytes()[:-50])


def remove(path):
    path.unlink()


def empty(path):
    path.write_text("{}", "utf-8")


def drop_a_row(path):
    pd.read_parquet(path).iloc[:-1].to_parquet(path)


def drop_a_curve(path):
    pd.read_parquet(path).drop(columns="f").to_parquet(path)


def change_a_number(path):
    table = pd.read_parquet(path)
    table.loc[0, "f"] += 1
    table.to_parquet(path)


@pytest.mark.parametrize(
    ("spoil", "end", "words"),
    [
        (remove, ".npz", "own.npz must be whole"),
        (shorten, ".npz", "own.npz must be"),
        (remove, ".parquet", "own.parquet must be whole"),
        (shorten, ".parquet", "own.parquet must be"),
        (drop_a_row, ".parquet", "own.parquet must agree with own.json, got other rows"),
        (drop_a_curve, ".parquet", "own.parquet must agree with own.json, got other rows"),
        (change_a_number, ".parquet", "own.parquet must agree with own.json, got other values"),
        (shorten, ".json", "complete JSON"),
        (empty, ".json", "must agree with its digest"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path, spoil, end, words):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own")
    spoil(tmp_path / f"own{end}")
    refuses(f"store: *{words}*", archive.read, path)


def test_curves_of_another_run_are_refused(tmp_path):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stored(elsewhere, "a", seed=1)
    archive.collect(elsewhere, "own")
    shutil.copy(elsewhere / "own.parquet", tmp_path)
    refuses("own.parquet must agree with own.json", archive.read, path)


def test_who_is_killed_between_two_files_leaves_what_was_stored(tmp_path, monkeypatch):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own")
    content = content_of(path)
    added = stored(tmp_path, "b", 1)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(archive, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            archive.collect(tmp_path, "own")
    assert content_of(path) == content
    assert added.is_file()
    archive.collect(tmp_path, "own")
    assert content_of(path) == content
    assert archive.names(path.parent) == {"a", "b"}


def test_anybody_reads_the_table_with_pandas(tmp_path):
    path = stored(tmp_path, "a")
    stored(tmp_path, "b", 1)
    labels = {"a": {"method": "FedSGM", "lr": 0.5, "feedback": True}, "b": {"method": "SGM"}}
    archive.collect(tmp_path, "own", {"full": labels})
    table = pd.read_parquet(tmp_path / "own.parquet")
    assert [*table][:7] == ["profile", "run", "method", "lr", "feedback", "seed", "round"]
    rows_of_a = table[table["run"] == "a"]
    assert {*rows_of_a["lr"]} == {0.5}
    assert {*rows_of_a["feedback"]} == {True}
    assert table.loc[table["run"] == "b", "lr"].isna().all()
    run = archive.read(path)
    for index, seed in enumerate(run["seeds"]):
        rows = rows_of_a[rows_of_a["seed"] == seed].set_index("round")
        evaluated = rows.loc[run["rounds"]]
        np.testing.assert_allclose(evaluated["f"], run["metrics"]["f"][index], rtol=1e-6)
        curve = np.array(run["info"]["g"][index])
        expected = curve[np.isfinite(curve)]
        np.testing.assert_allclose(rows["g_of_round"].dropna(), expected, rtol=1e-6)
    assert archive.summary(path)["labels"] == labels["a"]


def test_labels_are_renewed_without_another_run(tmp_path):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own", {"full": {"a": {"method": "SGM"}}})
    first_digest = archive.summary(path)["digest"]
    archive.collect(tmp_path, "own", {"full": {"a": {"method": "FedSGM"}}})
    assert {*pd.read_parquet(tmp_path / "own.parquet").method} == {"FedSGM"}
    assert archive.summary(path)["digest"] == first_digest
    stored(tmp_path, "b")
    archive.collect(tmp_path, "own")
    assert archive.summary(path)["labels"] == {"method": "FedSGM"}
    assert archive.summary(path.with_name("b.json"))["labels"] == {}


def test_what_is_not_there_is_refused(tmp_path):
    path = stored(tmp_path, "a")
    archive.collect(tmp_path, "own")
    refuses("full/c.json must exist", archive.read, path.with_name("c.json"))


def store_and_read(results, process):
    """Store eight runs, collect after each, and read all runs that were stored so far."""
    for number in range(8):
        with archive.exclusive(results):
            path = stored(results, f"run{process}_{number}", number)
        archive.collect(results, "own")
        for earlier in range(number + 1):
            run = archive.read(path.with_name(f"run{process}_{earlier}.json"))
            assert run["metrics"]["f"][0].tolist()[-3] == 123456.0


def test_processes_that_collect_at_once_all_succeed_and_lose_nothing(tmp_path):
    (tmp_path / "own").mkdir()
    processes = [forked(store_and_read, tmp_path, number) for number in range(2)]
    assert [status_of(process) for process in processes] == [0, 0]
    names = {f"run{process}_{number}" for process in range(2) for number in range(8)}
    assert archive.names(tmp_path / "own" / "full") == names
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


def test_curves_that_moved_while_a_run_was_read_are_read_again(tmp_path, monkeypatch):
    """Another process collects between the look-up of a run and that of its curves."""
    path = stored(tmp_path, "b")
    archive.collect(tmp_path, "own")
    content = content_of(path)
    usual = archive._table
    added = []

    def late(file):
        if not added:
            added.append(stored(tmp_path, "a", 3))  # comes first among the curves
            archive.collect(tmp_path, "own")
        return usual(file)

    monkeypatch.setattr(archive, "_table", late)
    assert content_of(path) == content
    assert added
