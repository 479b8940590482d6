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
    """The pinned version of every package."""
    versions = {}
    for line in read("constraints.txt").splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            versions[canonicalize_name(requirement.name)] = pin.version
    return versions


@pytest.fixture(scope="module")
def library():
    return tomllib.loads(read("pyproject.toml"))


@pytest.fixture(scope="module")
def studies():
    return tomllib.loads(read("papers/pyproject.toml"))["project"]


def test_every_requirement_is_pinned_within_its_range(pins, library, studies):
    lines = [*library["project"]["dependencies"], *studies["dependencies"]]
    for extra in library["project"]["optional-dependencies"].values():
        lines += extra
    groups = library["dependency-groups"]
    for name in groups:
        lines += members(groups, name)
    for requirement in map(Requirement, lines):
        if requirement.name != "fedlib":
            pinned = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pinned), f"{requirement} against {pinned}"


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
    released = re.findall(
        r"^## \[?(\d+\.\d+\.\d+)\]?",
        read("CHANGELOG.md"),
        flags=re.M,
    )
    assert released[0] == version


def test_the_repository_s_address_is_the_same_everywhere(library, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    address = library["project"].get("urls", {}).get("Repository", "")
    assert import_module("fedbook_repository").address(ROOT / "pyproject.toml") == address
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation.get("repository-code", "") == address, "enter it in both files"


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_uses_released_actions_and_targets_that_exist(path):
    text = path.read_text(encoding="utf-8")
    actions = re.findall(r"\buses: (\S+)", text)
    assert actions
    for action in actions:
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d[\d.]*", action)
    targets = re.findall(r"^([\w-]+(?: [\w-]+)*):", read("Makefile"), flags=re.M)
    names_of_targets = " ".join(targets).split()
    used = re.findall(r"\bmake (\w[\w-]*)", text)
    assert {*used} <= {*names_of_targets}


def test_every_group_that_is_installed_exists(library):
    places = ["Makefile", "Dockerfile", "README.md", *(p.relative_to(ROOT) for p in WORKFLOWS)]
    used = {name for file in places for name in re.findall(r"--group ([\w-]+)", read(file))}
    assert used
    assert used <= {*library["dependency-groups"]}


KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_changelog_has_versions_with_dates_and_kinds_of_changes():
    text = read("CHANGELOG.md")
    newest, *released = re.findall(r"^## (.*)$", text, flags=re.M)
    assert newest == "[Unreleased]"
    dates = [re.fullmatch(r"\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)", title)[1] for title in released]
    assert dates == sorted(dates, reverse=True)
    assert {*re.findall(r"^### (.*)$", text, flags=re.M)} <= KINDS
