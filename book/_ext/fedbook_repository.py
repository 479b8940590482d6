"""Links to the public repository: on every page, to edit it, to report an issue, to run it.

The address stands in one place, `Repository` under `[project.urls]` of pyproject.toml. Without one
no page has such a link.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).resolve().parents[2]
BRANCH = "main"
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
    options["extra_footer"] = f'<p><a href="{repository}">The repository of this book</a></p>'
    config.html_context["edit_page_url_template"] = f"{repository}/edit/{BRANCH}/{SOURCE}"
    config.html_context["edit_page_provider_name"] = "GitHub"


def setup(app: Sphinx) -> None:
    """Registers the option and the step with Sphinx."""
    app.add_config_value("fedbook_project", str(ROOT / "pyproject.toml"), "html", [str])
    app.connect("config-inited", link_repository)
