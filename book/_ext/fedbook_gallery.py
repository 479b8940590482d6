"""The gallery: every figure of the notebooks as a small picture that leads to its place.

A figure hangs itself up when its page is read (`hang`); directive ``gallery`` shows them by page.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from fedbook_data import BookDirective
from fedbook_noted import Noted
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform

PAGE = "book/gallery"
ROOT = "book/index"
WIDTH = 360  # pixels of a small picture


class Picture(NamedTuple):
    """A figure of a page: its number there, its anchor, what it is called, and it, small."""

    number: str
    anchor: str
    figure: str
    png: bytes


HUNG: Noted[list[Picture]] = Noted("gallery", list, PAGE)


class Gallery(nodes.General, nodes.Element):
    """The place of the pictures, which are known when all pages are read."""


class GalleryDirective(BookDirective):
    """``{gallery}``: all figures of the notebooks, page by page."""

    kind = "gallery"

    def build(self) -> list[nodes.Node]:
        """The place alone."""
        return [Gallery()]


def hang(env: BuildEnvironment, number: str, anchor: str, figure: str, png: bytes) -> None:
    """Notes a figure of the page that is being read, where the book has a gallery."""
    if png and PAGE in env.found_docs:
        picture = Picture(number, anchor, figure.replace("_", " "), small(png))
        HUNG.here(env).append(picture)


class Fill(SphinxPostTransform):
    """Puts the pictures into their place."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """A heading and a list of pictures for every page with figures, in the book's order."""
        for place in [*self.document.findall(Gallery)]:
            docs = dict.fromkeys([*below(self.env, ROOT), *sorted(self.env.found_docs)])
            whole = "".join(wall(self.env, doc) for doc in docs if doc in HUNG.all(self.env))
            place.replace_self(nodes.raw("", whole, format="html"))


def below(env: BuildEnvironment, docname: str) -> Iterator[str]:
    """A page and all that stand below it in the table of contents."""
    yield docname
    for child in env.toctree_includes.get(docname, ()):
        yield from below(env, child)


def wall(env: BuildEnvironment, docname: str) -> str:
    """The figures of one page."""
    title = escape(env.titles[docname].astext())
    items = "".join(item(docname, picture) for picture in HUNG.all(env)[docname])
    return f'<h2>{title}</h2><ul class="gallery wide-page">{items}</ul>'


def item(docname: str, picture: Picture) -> str:
    """One small picture with its words, as a link to the figure."""
    words = ": ".join(filter(None, (picture.number, picture.figure)))
    return (
        f'<li><a href="../{docname}.html#{picture.anchor}">'
        f'<img loading="lazy" width="{WIDTH}" alt="{escape(words)}, small" '
        f'src="../_static/gallery/{picture.anchor}.png"/><span>{escape(words)}</span></a></li>'
    )


def write(app: Sphinx, error: Exception | None) -> None:
    """Puts the small pictures beside the page."""
    if error is not None or app.builder.name != "html" or PAGE not in app.env.found_docs:
        return
    folder = Path(app.outdir) / "_static" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for pictures in HUNG.all(app.env).values():
        for picture in pictures:
            (folder / f"{picture.anchor}.png").write_bytes(picture.png)


def small(png: bytes) -> bytes:
    """A picture on white, `WIDTH` pixels wide, in few colours."""
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        whole = image.convert("RGBA")
        ground = Image.new("RGBA", whole.size, "white")
        flat = Image.alpha_composite(ground, whole).convert("RGB")
        size = (WIDTH, max(1, round(flat.height * WIDTH / flat.width)))
        shrunk = flat.resize(size, Image.Resampling.LANCZOS)
        shrunk.quantize(64).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def setup(app: Sphinx) -> None:
    """Registers the directive, and keeps what hangs."""
    app.add_node(Gallery)
    app.add_directive("gallery", GalleryDirective)
    app.add_post_transform(Fill)
    HUNG.connect(app)
    app.connect("build-finished", write)
