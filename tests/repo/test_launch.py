"""Where a notebook can be opened: links from one address, and the image with JupyterLab."""

import importlib
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from process import ran
from sphinx_book_theme.header_buttons.launch import add_launch_buttons

ROOT = Path(__file__).resolve().parents[2]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PAGE = "notebooks/executed/np_workshop"


@pytest.fixture
def launched(monkeypatch):
    """The addresses behind the rocket of a notebook's page, by the address of the repository."""
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    fedbook = importlib.import_module("fedbook")

    def addresses(repository):
        options = {
            "repository_url": repository,
            "repository_branch": CONFIG["repository"]["branch"],
            "launch_buttons": dict(CONFIG["launch_buttons"]),
        }
        config = SimpleNamespace(html_theme_options=options)
        fedbook.theme_options(None, config)
        env = SimpleNamespace(
            doc2path=lambda page: f"{page}.ipynb", metadata={PAGE: {"kernelspec": {}}}
        )
        app = SimpleNamespace(env=env, config={"html_theme_options": options})
        context = {"header_buttons": [], "sourcename": f"{PAGE}.ipynb", "pagename": PAGE}
        if found := re.fullmatch(r"(https://github\.com)/(\w+)/(\w+)", repository):
            parts = zip(("github_url", "github_user", "github_repo"), found.groups(), strict=True)
            context |= dict(parts)  # as the theme takes an address apart
        add_launch_buttons(app, PAGE, "page.html", context, None)
        groups = [group["buttons"] for group in context["header_buttons"]]
        return [button["url"] for buttons in groups for button in buttons]

    return addresses


def test_links_follow_from_the_address_of_the_repository(launched):
    assert launched("https://github.com/someone/fedlib") == [
        f"https://mybinder.org/v2/gh/someone/fedlib/main?urlpath=lab/tree/{PAGE}.ipynb",
        f"https://colab.research.google.com/github/someone/fedlib/blob/main/{PAGE}.ipynb",
    ]


def test_what_the_links_name_is_in_the_repository(launched):
    contents = (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")
    notebooks = {f"{page}.ipynb" for page in re.findall(r"file: (notebooks/\S+)", contents)}
    listed = ran(
        "git", "ls-files", "notebooks/executed", "results", cwd=ROOT, check=True
    ).stdout.split()
    assert f"{PAGE}.ipynb" in notebooks
    assert notebooks == {name for name in listed if name.endswith(".ipynb")}
    for link in launched("https://github.com/someone/fedlib"):
        path = urlsplit(link)
        words = parse_qs(path.query).get("urlpath", [path.path.partition("/main/")[2]])[0]
        assert words.removeprefix("lab/tree/") in notebooks
    kernels = {
        json.loads((ROOT / name).read_text(encoding="utf-8"))["metadata"]["kernelspec"]["name"]
        for name in notebooks
    }
    assert kernels == {"python3"}  # the image's own, and Colab's


def test_without_an_address_there_is_no_link(launched):
    assert launched("") == []
    assert CONFIG["repository"].keys() == {"url", "branch"}  # else it is the theme's own


def test_the_image_has_the_pinned_versions_and_the_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r'-c constraints\.txt -e "\.\[([\w,]+)\]"', DOCKERFILE)
    assert {"papers", "book", "lab"} <= {*extras.split(",")} <= {*project["optional-dependencies"]}
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (python,) = [d for d in environment["dependencies"] if str(d).startswith("python=")]
    (image,) = re.findall(r"^FROM python:(\d+\.\d+)-slim$", DOCKERFILE, flags=re.M)
    assert python.startswith(f"python={image}") or python.startswith(f"python=={image}")
    assert "adduser" not in DOCKERFILE  # not every slim image has it; useradd they have
    assert not [*(ROOT / ".binder").glob("*")]  # Binder reads the Dockerfile


def test_what_the_image_leaves_out_is_not_tracked():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    left_out = [line for line in lines if line and not line.startswith("#")]
    listed = ran("git", "ls-files", cwd=ROOT, check=True)
    tracked = {name.partition("/")[0] for name in listed.stdout.splitlines()}
    assert not tracked & {*left_out}
    assert {".venv", "_build"} <= {*left_out}
