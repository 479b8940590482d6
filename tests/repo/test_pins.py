"""Requirements, their pins in constraints.txt, environment.yml and the version say the same."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def members(groups, name):
    """The requirements of a group and of the groups that it includes."""
    for entry in groups[name]:
        if isinstance(entry, dict):
            yield from members(groups, entry["include-group"])
        else:
            yield entry


def names(requirements):
    return {canonicalize_name(Requirement(line).name) for line in requirements}


@pytest.fixture(scope="module")
def pins():
    lines = [line for line in read("constraints.txt").splitlines() if not line.startswith("#")]
    versions = {}
    for line in filter(None, lines):
        requirement = Requirement(line)
        (pin,) = requirement.specifier
        assert pin.operator == "==", line
        assert requirement.url is None, line
        assert "+" not in pin.version, line
        versions[canonicalize_name(requirement.name)] = pin.version
    return versions


@pytest.fixture(scope="module")
def library():
    return tomllib.loads(read("pyproject.toml"))


@pytest.fixture(scope="module")
def studies():
    return tomllib.loads(read("papers/pyproject.toml"))["project"]


def test_every_requirement_is_pinned_within_its_range(pins, library, studies):
    lists = [library["project"]["dependencies"], studies["dependencies"]]
    lists += library["project"]["optional-dependencies"].values()
    lists += [[*members(library["dependency-groups"], n)] for n in library["dependency-groups"]]
    for requirement in (Requirement(line) for lines in lists for line in lines):
        if requirement.name != "fedlib":
            pinned = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pinned), f"{requirement} against {pinned}"


def test_the_pip_that_make_installs_knows_groups(pins):
    assert tuple(map(int, pins["pip"].split("."))) >= (25, 1)


def test_torch_is_pinned(pins):
    assert pins["torch"] == "2.13.0"


def test_environment_has_what_make_installs(library, studies):
    pip = yaml.safe_load(read("environment.yml"))["dependencies"][-1]["pip"]
    assert pip[:3] == ["-c constraints.txt", "-e .[flower]", "-e ./papers"]
    assert '-e ".[flower]" -e ./papers --group dev' in read("Makefile")
    required = names(library["project"]["dependencies"]) | names(studies["dependencies"])
    required |= names(members(library["dependency-groups"], "dev"))
    assert names(pip[3:]) == required - {"fedlib"}


def test_the_version_is_the_same_everywhere(library, studies):
    version = library["project"]["version"]
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    assert studies["version"] == version
    released = re.findall(r"^## \[?(\d+\.\d+\.\d+)\]?", read("CHANGELOG.md"), flags=re.M)
    assert released[0] == version


def test_the_repository_s_address_is_the_same_everywhere(library, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    address = library["project"].get("urls", {}).get("Repository", "")
    assert import_module("fedbook_repository").address(ROOT / "pyproject.toml") == address
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation.get("repository-code", "") == address, "enter it in both files"


def test_extras_are_for_users_of_the_library(library):
    assert {*library["project"]["optional-dependencies"]} == {"flower"}


def test_the_library_s_wheel_has_one_package(library):
    assert library["tool"]["setuptools"]["packages"]["find"] == {"include": ["fedlib*"]}


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_uses_released_actions_and_targets_that_exist(path):
    text = path.read_text(encoding="utf-8")
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d[\d.]*", action) for action in actions)
    targets = re.findall(r"^([\w-]+(?: [\w-]+)*):", read("Makefile"), flags=re.M)
    targets = {name for line in targets for name in line.split()}
    assert {*re.findall(r"\bmake (\w[\w-]*)", text)} <= targets


def test_every_group_that_is_installed_exists(library):
    places = ["Makefile", "Dockerfile", "README.md", *(p.relative_to(ROOT) for p in WORKFLOWS)]
    used = {name for place in places for name in re.findall(r"--group ([\w-]+)", read(place))}
    assert used
    assert used <= {*library["dependency-groups"]}


KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_changelog_has_versions_with_dates_and_kinds_of_changes():
    text = read("CHANGELOG.md")
    first, *released = re.findall(r"^## (.*)$", text, flags=re.M)
    assert first == "[Unreleased]"
    dates = [re.fullmatch(r"\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)", title)[1] for title in released]
    assert dates == sorted(dates, reverse=True)
    assert {*re.findall(r"^### (.*)$", text, flags=re.M)} <= KINDS
