"""Notebook sources, and whether the committed notebooks are what the driver makes of them."""

import ast
import importlib
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import jupytext
import nbformat
import pytest

from papers import STUDIES

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "notebooks" / "src").glob("*.py"))
COMMITTED = [
    ROOT / "notebooks" / folder / f"{source.stem}.ipynb"
    for folder in ("executed", "quick")
    for source in SOURCES
]
SMALL = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% tags=["parameters"]
profile = "full"  # quick or full
lr = 0.1  # step size
rounds = None  # the profile's own

# %%
{code}
"""
PICTURE = "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\nprint(lr)"


@pytest.fixture
def small(driver, tmp_path, monkeypatch):
    """A folder of sources with one small notebook; call it with the code of its last cell."""
    monkeypatch.setattr(driver, "SOURCES", tmp_path)
    folders = {"quick": tmp_path / "quick", "full": tmp_path / "executed"}
    monkeypatch.setattr(driver, "FOLDERS", folders)

    def make(code="print(profile, lr)"):
        (tmp_path / "small.py").write_text(SMALL.format(code=code), encoding="utf-8")
        return tmp_path

    return make


def short(path):
    return f"{path.parent.name}/{path.stem}"


def tags(cell):
    return cell.metadata.get("tags", ())


def all_text(value):
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(all_text(v) for k, v in value.items() if k != "image/png")
    return "\n".join(all_text(v) for v in value) if isinstance(value, list) else ""


def outputs(notebook):
    return [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]


def test_there_are_sources():
    assert SOURCES


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_source_has_a_kernel_and_one_parameters_cell(path, driver):
    notebook = jupytext.read(path, fmt="py:percent")
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    (cell,) = [c for c in notebook.cells if "parameters" in tags(c)]
    assert all("#" in line for line in cell.source.splitlines() if " = " in line), cell.source
    checked = [c.source for c in notebook.cells if "nbval-check-output" in tags(c)]
    assert not [c for c in checked if c.rstrip().endswith(";")], (
        "nbval shows the value all the same"
    )
    assert "profile" in driver.declared_parameters(path.stem, notebook)


@pytest.mark.parametrize("path", COMMITTED, ids=short)
def test_committed_notebook_is_what_an_execution_of_its_source_left(path, driver):
    assert not importlib.import_module("checking").read_faults(path, driver.read_source(path.stem))
    notebook = nbformat.read(path, as_version=4)
    assert outputs(notebook)
    hidden = [c for c in notebook.cells if "remove-cell" in tags(c)]
    assert hidden == [c for c in notebook.cells if "injected-parameters" in tags(c)]
    assert any("parameters" in tags(c) for c in notebook.cells)  # shown: pasted code needs them


@pytest.mark.parametrize("path", [p for p in COMMITTED if p.parent.name == "quick"], ids=short)
def test_quick_notebook_holds_checked_text_and_no_pictures(path):
    notebook = nbformat.read(path, as_version=4)
    kinds = {kind for o in outputs(notebook) for kind in o.get("data", {})}
    assert not [kind for kind in kinds if kind.startswith("image/") or kind == "text/html"]
    checked = [c for c in notebook.cells if "nbval-check-output" in tags(c)]
    assert checked
    assert all(c.outputs for c in checked)


def test_all_quick_notebooks_together_take_less_than_ten_minutes_on_two_cores():
    took = {}
    for path in (p for p in COMMITTED if p.parent.name == "quick"):
        record = nbformat.read(path, as_version=4).metadata["fedlib"]
        took[path.stem] = record.get("ran", {}).get("cpu_s")
    silent = [name for name, seconds in took.items() if seconds is None]
    assert not silent, f"{silent} do not say what they took; execute.py executes them again"
    slowest = sorted(took, key=took.get)[-3:]
    assert sum(took.values()) / 2 < 600, f"give the quick profile of {slowest} less to do"


def test_each_situation_takes_at_most_fifteen_lines():
    source = (ROOT / "notebooks" / "src" / "tutorial_own.py").read_text(encoding="utf-8")
    cells = [c.source for c in jupytext.reads(source, "py:percent").cells if "situation" in tags(c)]
    assert len(cells) == 5
    assert max(len([x for x in cell.splitlines() if x.strip()]) for cell in cells) <= 15


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("small -p lrr 0.1", "small: there is no parameter 'lrr'; nearest: lr."),
        ("small --profile ful", "small: there is no profile 'ful'; nearest: full."),
        ("small -p profile ful", "small: there is no profile 'ful'; nearest: full."),
        ("small -p lr fast", "small: parameter 'lr' must be of kind float, got 'fast'"),
        ("smal", "execute: there is no notebook 'smal'; nearest: small."),
    ],
)
def test_what_is_not_known_is_refused(driver, small, capsys, arguments, sentence):
    folder = small()
    assert driver.main(arguments.split()) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {sentence}")
    assert said.endswith(".\n")
    assert said.count("\n") == 1
    assert not (folder / "quick").exists()


@pytest.mark.parametrize("text", ["0,1", "(0, 1)", "[0, 1]"])
def test_a_list_may_be_given_without_brackets(driver, text):
    assert driver.literal(text) == [0, 1]


def test_a_text_where_a_list_belongs_is_refused_as_such(driver, capsys):
    assert driver.main(["np_workshop", "-p", "seeds", "[0, 1"]) == 1
    assert "parameter 'seeds' must be of kind list, got '[0, 1'." in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_costs_no_notebook(tmp_path):
    command = [sys.executable, ROOT / "notebooks" / "execute.py", "tutorial_problem"]
    done = subprocess.run(
        [*command, "-p", "rounds", "2", "--out", tmp_path],
        cwd=ROOT,
        env={**os.environ, "MPLCONFIGDIR": "/proc/nothing", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tutorial_problem.ipynb").exists()


@pytest.mark.parametrize("name", STUDIES)
def test_every_parameter_of_a_study_can_be_given_to_its_notebook(name, driver):
    source, every = driver.read_source(name), STUDIES[name].resolve("quick")
    given = driver.placed(name, source, {"profile": "quick", **every})
    declared = driver.declared_parameters(name, source)
    assert given.keys() <= declared.keys()
    assert {**given, **given.get("others", {})}.items() >= every.items()
    driver.check_parameters(name, source, {"profile": "quick", **every})
    (cell,) = (c.source for c in source.cells if "study.resolve(" in c.source)
    taken = cell[cell.index("changes = ") : cell.index("params = ")]
    here = {name: name for name in declared} | {"others": {"of the study": 1}}
    exec(taken, here)
    assert here["changes"].items() >= {"of the study": 1}.items()
    assert {*declared} - {*here["changes"]} <= {"profile", "device", "recompute", "others"}


@pytest.mark.parametrize("name", STUDIES)
def test_the_run_that_is_shown_as_a_program_is_one_of_the_study(name, driver):
    study = STUDIES[name]
    shown = re.findall(
        r"report\.program\(study, params, (.*)\)",
        (driver.SOURCES / f"{name}.py").read_text("utf-8"),
    )
    (runs,) = (ast.literal_eval(f"({names},)") for names in shown)
    for profile in ("quick", "full"):
        assert {*runs} & {*study.specs(study.resolve(profile))}, profile


def test_without_a_place_for_others_the_cells_own_parameters_are_all(driver, small, monkeypatch):
    monkeypatch.setitem(STUDIES, "small", STUDIES["np_workshop"])
    small()
    with pytest.raises(sys.modules["stamping"].NotebookError, match="no parameter 'fraction'"):
        driver.check_parameters("small", driver.read_source("small"), {"fraction": 0.2})


def test_second_parameters_cell_is_refused(driver, small):
    small('pass\n\n# %% tags=["parameters"]\nlr = 1')
    with pytest.raises(sys.modules["stamping"].NotebookError, match="exactly one cell"):
        driver.read_source("small")


def test_execution_injects_stamps_and_repeats(driver, small):
    folder = small(PICTURE)
    written, ran = [], []
    for _ in range(2):
        assert driver.main(["small", "-p", "lr", "2", "--out", str(folder)]) == 0
        notebook = nbformat.read(folder / "small.ipynb", as_version=4)
        record = notebook.metadata["fedlib"]
        assert record["page"] == sys.modules["stamping"].page_digest(notebook)
        ran.append(record.pop("ran"))
        del record["page"]  # it seals the times too
        written.append(nbformat.writes(notebook))
    assert written[0] == written[1]
    for record in ran:
        assert record["device"] == "cpu"
        assert date.fromisoformat(record["date"])
        assert 0 < record["cpu_s"] < 60
        assert record["wall_s"] > 0
    assert notebook.metadata["fedlib"]["parameters"] == {"profile": "quick", "lr": 2}
    assert "2\n" in all_text(outputs(notebook))
    assert "<b>x</b>" in all_text(outputs(notebook))  # a reader's own run shows its pictures


def test_committed_quick_notebooks_hold_no_pictures(driver, small):
    folder = small(PICTURE)
    assert driver.main(["small"]) == 0
    shown = all_text(outputs(nbformat.read(folder / "quick" / "small.ipynb", as_version=4)))
    assert "0.1\n" in shown
    assert "<b>x</b>" not in shown


def test_progress_bars_are_not_kept_but_warnings_are(driver, small):
    folder = small(
        "import sys\n"
        "from tqdm import tqdm\n"
        "for _ in tqdm(range(2)):\n    pass\n"
        "sys.stderr.flush()\n\n# %%\nprint('careful', file=sys.stderr)"
    )
    assert driver.main(["small", "--out", str(folder)]) == 0
    (output,) = outputs(nbformat.read(folder / "small.ipynb", as_version=4))
    assert output.text == "careful\n"


def test_failing_cell_leaves_nothing(driver, small, capsys):
    folder = small("raise ValueError('broken')")
    assert driver.main(["small"]) == 1
    assert "small: a cell failed, nothing was written" in capsys.readouterr().err
    assert not list(folder.rglob("*.ipynb"))
    assert not list(folder.rglob("*.tmp"))


def test_path_of_the_machine_is_refused_and_the_repository_cut_off(driver, small, capsys):
    folder = small("print('/home/somebody/file.txt')")
    assert driver.main(["small"]) == 1
    assert "'/home/somebody/file.txt' of this machine" in capsys.readouterr().err
    small(f"print({str(ROOT / 'results' / 'x.json')!r})")
    assert driver.main(["small", "--out", str(folder)]) == 0
    (output,) = outputs(nbformat.read(folder / "small.ipynb", as_version=4))
    assert output.text == "results/x.json\n"


def test_pieces_of_a_stream_are_put_together_and_addresses_are_cut_off(driver, small):
    folder = small(
        "import sys, time\nprint(1)\nsys.stdout.flush()\ntime.sleep(0.5)\nprint(2)\nobject()"
    )
    assert driver.main(["small", "--out", str(folder)]) == 0
    stream, value = outputs(nbformat.read(folder / "small.ipynb", as_version=4))
    assert stream.text == "1\n2\n"
    assert value.data["text/plain"] == "<object at 0x0>"


@pytest.mark.parametrize("path", COMMITTED, ids=short)
def test_no_cell_shows_a_bare_truth_value(path):
    notebook = nbformat.read(path, as_version=4)
    shown = [
        o.get("data", {}).get("text/plain", "")
        for c in notebook.cells
        for o in c.get("outputs", [])
    ]
    assert not {"True", "False", "None"} & {"".join(text).strip() for text in shown}
    assert not [c for c in notebook.cells if c.cell_type == "code" and "# noqa" in c.source]
