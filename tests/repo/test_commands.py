"""The commands that the book and the README print, taken from there and carried out, made small.

`make -n` says what a command would run; the programs behind it then run in this process, with few
rounds and in a folder of the test.
"""

import importlib
import json
import re
import shlex
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

import papers.__main__ as command_line
from papers import STUDIES
from papers.kit import archive, store
from tests.helpers.process import ran
from tests.helpers.unlabelled import quantities

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "book" / "rerun.md"]
SOURCES = sorted((ROOT / "notebooks" / "src").glob("*.py"))
PYTHON, SNAKEMAKE = ".venv/bin/python", ".venv/bin/snakemake"


def printed(path):
    """The commands of the bash blocks of a page, without their comments."""
    blocks = re.findall(r"^```bash\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [words for line in lines if (words := shlex.split(line.rstrip(" &"), comments=True))]


def linked(source):
    """The commands that a page prints to be executed again."""
    data = importlib.import_module("fedbook_data")
    found = []
    for name in re.findall(r"\{notebook-links\} (\w+)", source.read_text(encoding="utf-8")):
        found += [shlex.split(line) for line in data.command_of(name).splitlines()]
    return found


def recipe(words):
    """The lines that a command runs: those of make's target, or the command itself."""
    while "=" in words[0]:  # variables of the environment stand in front
        words = words[1:]
    if words[0] != "make":
        return [words]
    done = ran("make", "-n", "--no-print-directory", "-o", ".venv/.stamp", *words[1:], cwd=ROOT)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    lines = done.stdout.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.startswith((PYTHON, SNAKEMAKE))]


@pytest.fixture(scope="module", autouse=True)
def extension():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "book" / "_ext")
        yield


def accepted(driver, line):
    """Raise unless the program behind a line knows its arguments and every name among them."""
    if line[0] in (".venv/bin/pip", ".venv/bin/jupyter") or line[1:3] == ["-m", "ipykernel"]:
        assert line[1] == "install" or line[1] == "lab" or line[3] == "install", line
        return
    if line[0] == ".venv/bin/snakemake":
        assert line[1] in ("--executor", "--cores"), line
        return
    if line[0] == "docker":
        assert (ROOT / "Dockerfile").is_file()
        return
    assert line[0] in (PYTHON, ".venv/bin/papermill"), line
    if line[1] == "notebooks/execute.py":
        driver.checked_request(driver.parse(line[2:]))
        return
    if line[1].startswith("notebooks/src/") or line[0].endswith("papermill"):
        assert (ROOT / line[1]).is_file()
        return
    if line[1:3] == ["-m", "papers"]:
        given = command_line.parser().parse_args(line[3:])
        if given.command == "reproduce":
            assert given.study in STUDIES
            study = STUDIES[given.study]
            specs = study.specs(study.resolve(given.profile))
            assert any(fnmatch(name, given.runs) for name in specs)
        return
    if line[1] == "book/pdf.py":
        assert (ROOT / line[1]).is_file()
        return
    assert line[1:3] in (["-m", "pytest"], ["-m", "benchmarks"], ["-m", "compileall"]), line


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_every_command_of_a_page_is_accepted(path, driver):
    commands = printed(path)
    assert len(commands) >= 5
    for words in commands:
        for line in recipe(words):
            accepted(driver, line)


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_the_commands_at_the_foot_of_a_notebook_are_accepted(source, driver):
    expected = "{notebook-links}" in source.read_text(encoding="utf-8")
    commands = linked(source)
    assert bool(commands) == expected
    for words in commands:
        assert f"NAME={source.stem}" in words
        (line,) = recipe(words)
        accepted(driver, line)


@pytest.mark.parametrize(
    "command",
    [
        "make notebok NAME=np_workshop",
        "make notebook NAME=np_workshp",
        'make notebook NAME=np_workshop ARGS="-p round 50"',
        'make notebook NAME=np_workshop ARGS="-p profile ful"',
        "make notebook",
        ".venv/bin/python -m papers reproduce cartpole --runs 'sofft_*'",
        ".venv/bin/python -m papers reproduce cartpol",
        ".venv/bin/python -m papers compare np_workshop/hard",
    ],
)
def test_a_command_with_a_mistake_is_not_accepted(command, driver):
    with pytest.raises((AssertionError, SystemExit, driver.NotebookError)):
        accepted(driver, recipe(shlex.split(command))[0])


def of_page(start):
    """The first command of `rerun.md` that starts so."""
    words = shlex.split(start)
    return next(found for found in printed(PAGES[1]) if found[: len(words)] == words)


def test_one_notebook_with_other_parameters(driver, tmp_path, capfd):
    (line,) = recipe(of_page('make notebook NAME=np_workshop ARGS="-p rounds 50"'))
    small = [word.replace("rounds 50", "rounds 3") for word in line[2:]]
    changed = ["-p", "seeds", "[3,4]", "-p", "fraction", "0.25", "-p", "settle_rounds", "5"]
    assert driver.main([*small, *changed, "--out", str(tmp_path)]) == 0, capfd.readouterr().err
    notebook = (tmp_path / "np_workshop.ipynb").read_text(encoding="utf-8")
    changes = "seeds (3, 4), rounds 3, fraction 0.25, settle_rounds 5"
    assert f"runs are the study's, profile 'quick' with {changes}" in notebook
    source = (ROOT / "notebooks" / "src" / "np_workshop.py").read_text(encoding="utf-8")
    outputs = [o for c in json.loads(notebook)["cells"] for o in c.get("outputs", ())]
    shown = ["".join(o.get("data", {}).get("text/html", "")) for o in outputs]
    assert sum("fed-figure" in text for text in shown) == source.count("plot.show(")
    assert not capfd.readouterr().err


def test_a_study_without_jupyter(tmp_path, monkeypatch):
    (line,) = recipe(of_page("make reproduce"))
    study = STUDIES[line[4]]

    def few(params):
        specs = study.specs({**params, "rounds": 2, "seeds": (0, 1)})
        return {name: spec for name, spec in specs.items() if name in ("hard", "soft")}

    small = replace(study, specs=few, derive=lambda *_: quantities({}))
    monkeypatch.setitem(STUDIES, study.name, small)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    assert command_line.main(line[3:]) == 1  # nothing is stored to compare with, and nothing is
    assert not [*tmp_path.iterdir()]
    assert command_line.main([*line[3:], "--store"]) == 0
    assert command_line.main(line[3:]) == 0
    stored = sorted(archive.names(tmp_path / study.name / "full"))
    assert len(stored) == 3
    assert "numbers" in stored
    run = next(name for name in stored if name != "numbers")
    assert archive.read(store.run_path(study.name, "full", run))["seeds"] == [0, 1]


def test_comparisons_print_what_the_page_shows(capsys):
    (first,) = (w for w in printed(PAGES[1]) if "compare" in w)
    assert command_line.main(first[3:]) == 0
    now = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    (shown,) = re.findall(
        r"^```text\n(.*?)^```", PAGES[1].read_text(encoding="utf-8"), flags=re.M | re.S
    )
    assert now == shown.rstrip("\n"), "book/rerun.md shows what the command printed: copy it again"
