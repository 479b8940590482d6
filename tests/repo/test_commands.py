"""The commands that the book and the README print, taken from there and carried out, made small.

`make -n` says what a command would run; the programs behind it then run in this process, with few
rounds and in a folder of the test.
"""

import importlib
import json
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

import pytest

import papers.__main__ as command_line
from papers import STUDIES
from tests.helpers.process import ran

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "book" / "rerun.md"]
SOURCES = sorted((ROOT / "notebooks" / "src").glob("*.py"))
PYTHON = ".venv/bin/python"
SNAKEMAKE = ".venv/bin/snakemake"
#: Programs that pages start, and the first word after them.
MODULES = ("-m pytest", "-m benchmarks", "-m compileall", "-m ipykernel")
PROGRAMS = (
    (".venv/bin/pip", "install"),
    (".venv/bin/jupyter", "lab"),
    (SNAKEMAKE, "--executor"),
    (SNAKEMAKE, "--cores"),
    ("docker", "build"),
    ("docker", "run"),
)


def printed(path):
    """The commands of the bash blocks of a page, without their comments."""
    text = path.read_text(encoding="utf-8")
    commands = []
    for block in re.findall(r"^```bash\n(.*?)^```", text, flags=re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.rstrip(" &"), comments=True)
            if words:
                commands.append(words)
    return commands


def linked(source):
    """The commands that a page prints to be executed again."""
    data = importlib.import_module("fedbook_data")
    commands = []
    for name in re.findall(r"\{notebook-links\} (\w+)", source.read_text(encoding="utf-8")):
        commands += [shlex.split(line) for line in data.command_of(name).splitlines()]
    return commands


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
    program, *words = line
    if words[0] == "notebooks/execute.py":
        driver.checked_request(driver.parse(words[1:]))
    elif words[:2] == ["-m", "papers"]:
        options = command_line.parser().parse_args(words[2:])
        if options.command == "reproduce":
            study = STUDIES[options.study]
            specs = study.specs(study.resolve(options.profile))
            assert any(fnmatch(name, options.runs) for name in specs)
    elif words[0].endswith(".py") or program.endswith("papermill"):
        assert (ROOT / words[0]).is_file()
    elif program == PYTHON:
        assert " ".join(words[:2]) in MODULES, line
    else:
        assert (program, words[0]) in PROGRAMS, line


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
        'make notebook NAME=np_workshop ARGS="-p round 50"',
        ".venv/bin/python -m papers reproduce cartpole --runs 'sofft_*'",
        ".venv/bin/python -m papers compare np_workshop/hard",
    ],
)
def test_a_command_with_a_mistake_is_not_accepted(command, driver):
    with pytest.raises((AssertionError, SystemExit, driver.NotebookError)):
        accepted(driver, recipe(shlex.split(command))[0])


def test_one_notebook_with_other_parameters(driver, tmp_path, capfd):
    start = shlex.split('make notebook NAME=np_workshop ARGS="-p rounds 50"')
    command = next(words for words in printed(PAGES[1]) if words[: len(start)] == start)
    (line,) = recipe(command)
    small = [word.replace("rounds 50", "rounds 3") for word in line[2:]]
    further = ["-p", "seeds", "[3,4]", "-p", "settle_rounds", "2", "--out", str(tmp_path)]
    assert driver.main([*small, *further]) == 0, capfd.readouterr().err
    notebook = (tmp_path / "np_workshop.ipynb").read_text(encoding="utf-8")
    changes = "seeds (3, 4), rounds 3, settle_rounds 2"
    assert f"runs are the study's, profile 'quick' with {changes}" in notebook
    source = (ROOT / "notebooks" / "src" / "np_workshop.py").read_text(encoding="utf-8")
    outputs = [o for c in json.loads(notebook)["cells"] for o in c.get("outputs", ())]
    shown = ["".join(o.get("data", {}).get("text/html", "")) for o in outputs]
    assert sum("fed-figure" in text for text in shown) == source.count("plot.show(")
    assert not capfd.readouterr().err


def test_comparisons_print_what_the_page_shows(capsys):
    (command,) = (words for words in printed(PAGES[1]) if "compare" in words)
    assert command_line.main(command[3:]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    page = PAGES[1].read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```", page, flags=re.M | re.S)
    message = "book/rerun.md shows what the command printed: copy it again"
    assert "\n".join(lines) == shown.rstrip("\n"), message
