"""The gallery: every figure of the notebooks as a small picture that leads to its place.

A figure hangs itself up when its page is read (`hang`); directive ``gallery`` shows them by page.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from fedbook_data import BookDirective
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform

HUNG = "fedbook_gallery"
PAGE = "book/gallery"
WIDTH = 360  # pixels of a small picture


class Picture(NamedTuple):
    """A figure of a page: its number there, its anchor, what it is called, and its file."""

    number: str
    anchor: str
    figure: str
    file: str


class Gallery(nodes.General, nodes.Element):
    """The place of the pictures, which are known when all pages are read."""


class GalleryDirective(BookDirective):
    """``{gallery}``: all figures of the notebooks, page by page."""

    kind = "gallery"

    def build(self) -> list[nodes.Node]:
        """The place alone."""
        return [Gallery()]


def hung(env: BuildEnvironment) -> dict[str, list[Picture]]:
    """Page -> its figures in order."""
    if not hasattr(env, HUNG):
        setattr(env, HUNG, {})
    found: dict[str, list[Picture]] = getattr(env, HUNG)
    return found


def hang(
    env: BuildEnvironment, number: str, anchor: str, figure: str, files: dict[str, list[Path]]
) -> None:
    """Notes a figure of the page that is being read."""
    paths = files.get("SVG") or files.get("PNG")
    if paths:
        picture = Picture(number, anchor, figure.replace("_", " "), str(paths[0]))
        hung(env).setdefault(env.docname, []).append(picture)


class Fill(SphinxPostTransform):
    """Puts the pictures into their place."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """A heading and a list of pictures for every page with figures, in the book's order."""
        for place in [*self.document.findall(Gallery)]:
            order = [doc for doc in self.env.toctree_includes if doc in self.env.found_docs]
            docs = [*order, *sorted(self.env.found_docs)]
            whole = "".join(
                wall(self.env, doc) for doc in dict.fromkeys(docs) if doc in hung(self.env)
            )
            place.replace_self(nodes.raw("", whole, format="html"))


def wall(env: BuildEnvironment, docname: str) -> str:
    """The figures of one page."""
    title = escape(env.titles[docname].astext())
    items = "".join(item(docname, picture) for picture in hung(env)[docname])
    return f'<h2>{title}</h2><ul class="gallery">{items}</ul>'


def item(docname: str, picture: Picture) -> str:
    """One small picture with its words, as a link to the figure."""
    words = ": ".join(filter(None, (picture.number, picture.figure)))
    return (
        f'<li><a href="../{docname}.html#{picture.anchor}">'
        f'<img loading="lazy" width="{WIDTH}" alt="{escape(words)}, small" '
        f'src="../_static/gallery/{picture.anchor}.png"/><span>{escape(words)}</span></a></li>'
    )


def write(app: Sphinx, error: Exception | None) -> None:
    """Makes the small pictures of the figures that changed."""
    if error is not None or app.builder.name != "html" or PAGE not in app.env.found_docs:
        return
    folder = Path(app.outdir) / "_static" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for pictures in hung(app.env).values():
        for picture in pictures:
            path, source = folder / f"{picture.anchor}.png", Path(picture.file)
            if not path.is_file() or path.stat().st_mtime < source.stat().st_mtime:
                path.write_bytes(small(source))


def small(source: Path) -> bytes:
    """A picture on white, `WIDTH` pixels wide, in few colours."""
    import vl_convert
    from PIL import Image

    content = source.read_bytes()
    if source.suffix == ".svg":
        content = vl_convert.svg_to_png(content.decode(), scale=1.0)
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(content)) as image:
        whole = image.convert("RGBA")
        ground = Image.new("RGBA", whole.size, "white")
        flat = Image.alpha_composite(ground, whole).convert("RGB")
        size = (WIDTH, max(1, round(flat.height * WIDTH / flat.width)))
        shrunk = flat.resize(size, Image.Resampling.LANCZOS)
        shrunk.quantize(32).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """A page that is read again hangs its figures anew."""
    hung(env).pop(docname, None)


def merge(
    app: Sphinx, env: BuildEnvironment, docnames: Iterable[str], other: BuildEnvironment
) -> None:
    """What another process has read."""
    hung(env).update({k: v for k, v in hung(other).items() if k in docnames})


def again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Writes the page anew whatever changed."""
    return [PAGE] if PAGE in env.found_docs else []


def setup(app: Sphinx) -> None:
    """Registers the directive, and keeps what hangs."""
    app.add_node(Gallery)
    app.add_directive("gallery", GalleryDirective)
    app.add_post_transform(Fill)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", again)
    app.connect("build-finished", write)
