"""What pages note while they are read, for a page that shows it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

T = TypeVar("T")


class Noted(Generic[T]):
    """Page -> what it noted, kept with Sphinx's environment from build to build.

    `empty` makes what a page begins with; `shown_on` is the page that is written anew each time.
    """

    def __init__(self, name: str, empty: Callable[[], T], shown_on: str) -> None:
        self.name, self.empty, self.shown_on = f"fedbook_{name}", empty, shown_on

    def all(self, env: BuildEnvironment) -> dict[str, T]:
        """What all pages noted."""
        if not hasattr(env, self.name):
            setattr(env, self.name, {})
        found: dict[str, T] = getattr(env, self.name)
        return found

    def here(self, env: BuildEnvironment) -> T:
        """What the page that is being read noted, to be added to."""
        return self.all(env).setdefault(env.docname, self.empty())

    def connect(self, app: Sphinx) -> None:
        """Forgets what a page noted before it is read again, and takes over what others read."""

        def forget(_: Sphinx, env: BuildEnvironment, docname: str) -> None:
            self.all(env).pop(docname, None)

        def merge(
            _: Sphinx, env: BuildEnvironment, docnames: Iterable[str], other: BuildEnvironment
        ) -> None:
            self.all(env).update({k: v for k, v in self.all(other).items() if k in docnames})

        def again(_: Sphinx, env: BuildEnvironment) -> list[str]:
            return [self.shown_on] if self.shown_on in env.found_docs else []

        app.connect("env-purge-doc", forget)
        app.connect("env-merge-info", merge)
        app.connect("env-updated", again)
