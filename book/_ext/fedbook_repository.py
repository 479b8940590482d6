"""The line at the end of every page, and links to the public repository.

The line has licence, version, date, repository and citation. The repository's address stands in
one place, `Repository` under `[project.urls]` of pyproject.toml. Without one no page links to it.
"""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from fedbook_data import BookDirective
from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).resolve().parents[2]
BRANCH = "main"
CITED = "book/references"  # the page with the section on licence and citation
#: Of a notebook its source is edited, not the executed copy.
SOURCE = "{{ file_name | replace('notebooks/', 'notebooks/src/') | replace('.ipynb', '.py') }}"


def address(project: Path) -> str:
    """The repository's address in a pyproject.toml; empty if it has none."""
    urls = tomllib.loads(project.read_text(encoding="utf-8"))["project"].get("urls", {})
    return str(urls.get("Repository", "")).rstrip("/")


def link_repository(app: Sphinx, config: Config) -> None:
    """Set the theme's options that follow from the address."""
    repository = address(Path(app.confdir, config.fedbook_project))
    options = config.html_theme_options
    if not repository:
        options.pop("launch_buttons", None)  # to where would they lead?
        return
    options["repository_url"] = repository
    options["repository_branch"] = BRANCH
    options["use_repository_button"] = True
    options["use_issues_button"] = True
    options["use_edit_page_button"] = True
    config.html_context["edit_page_url_template"] = f"{repository}/edit/{BRANCH}/{SOURCE}"
    config.html_context["edit_page_provider_name"] = "GitHub"


@cache
def citation() -> dict[str, Any]:
    """The fields of CITATION.cff."""
    fields: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return fields


@cache
def commit_date() -> str:
    """The date of the last commit, YYYY-MM-DD; empty outside of a clone."""
    command = ["git", "log", "-1", "--format=%cs"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def write_footer(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Say licence, version, date, repository and citation at the end of a page."""
    del pagename, templatename, doctree
    address_of_licence = "#"
    if CITED in app.env.found_docs:
        address_of_licence = context["pathto"](CITED).removesuffix("#") + "#licence-and-citation"
    fields = citation()
    facts = [
        f'<a href="{address_of_licence}">{escape(fields["license"])} licence</a>',
        f"version {escape(fields['version'])}",
        commit_date(),
        f'<a href="{address_of_licence}">How to cite</a>',
    ]
    repository = address(Path(app.confdir, app.config.fedbook_project))
    if repository:
        facts.append(f'<a href="{repository}">The repository of this book</a>')
    context["theme_extra_footer"] = f"<p>{' · '.join(filter(None, facts))}</p>"


class Citation(BookDirective):
    """``{citation}``: an entry for BibTeX, from CITATION.cff."""

    subtype = "citation"

    def build(self) -> list[nodes.Node]:
        """The entry as a block that can be copied."""
        self.env.note_dependency(str(ROOT / "CITATION.cff"))
        fields = citation()
        authors = " and ".join(author["name"] for author in fields["authors"])
        values = {"title": fields["title"], "author": authors, "version": fields["version"]}
        if commit_date():
            values["year"] = commit_date().partition("-")[0]
        lines = [f"  {name} = {{{value}}}," for name, value in values.items()]
        entry = "\n".join(["@software{fedlib,", *lines, "}"])
        return [nodes.literal_block(entry, entry, language="bibtex")]


def setup(app: Sphinx) -> None:
    """Registers the option, the steps and the directive with Sphinx."""
    app.add_config_value("fedbook_project", str(ROOT / "pyproject.toml"), "html", [str])
    app.add_directive("citation", Citation)
    app.connect("config-inited", link_repository)
    app.connect("html-page-context", write_footer)
