"""The pins of constraints.txt, environment.yml and pyproject.toml say the same."""

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def pins(lines):
    found = {}
    for line in lines:
        requirement = Requirement(line)
        (pin,) = requirement.specifier
        assert pin.operator == "==", line
        assert requirement.url is None, line
        assert "+" not in pin.version, line
        found[canonicalize_name(requirement.name)] = pin.version
    return found


@pytest.fixture(scope="module")
def constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return pins(line for line in lines if line and not line.startswith("#"))


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_environment_has_the_same_pins(constraints):
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (listed,) = (item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert pins(line for line in listed if not line.startswith("-e ")) == constraints


def test_every_requirement_is_pinned_within_its_range(constraints, project):
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for line in (line for group in groups for line in group):
        requirement = Requirement(line)
        pinned = constraints[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pinned), f"{line} against {pinned}"


def test_torch_is_pinned(constraints):
    assert constraints["torch"] == "2.13.0"


def test_version_is_the_same_everywhere(project):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"]
