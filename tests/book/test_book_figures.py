"""What stands under the book's figures, and the previews of its links."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import pytest
from docutils import nodes

from papers.kit import plot
from tests.helpers import toy_book

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(tmp_path, monkeypatch):
    return toy_book.prepare(tmp_path, monkeypatch)


@pytest.fixture
def extension(monkeypatch):
    """Imports a module of the extension."""
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    return importlib.import_module


def without_tags(html):
    return re.sub(r"<[^>]*>", "", html)


def downloads(page, folder):
    """The folded lines under each figure: label -> bytes of the file."""
    files = []
    for fold in re.findall(
        r'<details class="figure-files">(.*?)</details>',
        page,
        flags=re.S,
    ):
        links = re.findall(r'<a class="[^"]*"[^>]*href="(?:\.\./)*([^"]+)">(.*?)</a>', fold)
        contents = {}
        for address, text in links:
            contents[without_tags(text)] = (folder / address).read_bytes()
        files.append(contents)
    return files


FIGURE = "```{themed-figure} toy/curve\n:alt: A curve\n\nDown.\n```"
PAGES = "```{toctree}\nnotebooks/toy\nnotebooks/note\nelsewhere\n```"
SHOW = 'plot.show(fig, "curve", alt="A curve.")'
FILES = {"svg": plot.packed(b'<svg width="9pt"></svg>'), "csv": plot.packed(b"x,y\n1,2\n")}
CURVE = {**FILES, "name": "curve", "runs": ["old"], "profile": "full"}
NAMELESS = {**FILES, "name": "", "runs": [], "profile": "full"}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A small book with the notebook of a study, a note, and a page that shows a figure again.

    A dictionary: page -> text, and "out" -> the folder of pages.
    """
    folder = tmp_path_factory.mktemp("book")
    executed = folder / "notebooks"
    with pytest.MonkeyPatch.context() as patch:
        build = toy_book.prepare(folder, patch)
        executed.mkdir()
        study = toy_book.notebook(('study = STUDIES["toy"]', []), (SHOW, toy_book.output(**CURVE)))
        (executed / "toy.ipynb").write_text(study, encoding="utf-8")
        note = toy_book.notebook((SHOW, toy_book.output(**NAMELESS)), (SHOW, toy_book.output()))
        (executed / "note.ipynb").write_text(note, encoding="utf-8")
        (folder / "elsewhere.md").write_text(f"# Elsewhere\n\n{FIGURE}\n", encoding="utf-8")
        status, messages, index = build(f"{PAGES}\n\n```{{claims}}\n```")
    assert status == 0, messages
    out = folder / "out"
    pages = {"index": index, "out": out}
    for name in ("notebooks/toy", "notebooks/note", "elsewhere"):
        pages[name] = (out / f"{name}.html").read_text(encoding="utf-8")
    return pages


def settings_below(page):
    """The words of the settings under the first figure of a page."""
    table = page.partition("figure-settings")[2].partition("</table>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", table).split())


@pytest.mark.parametrize("name", ["notebooks/toy", "elsewhere"])
def test_a_figure_stands_above_its_files_on_its_page_and_elsewhere(book, name):
    page = book[name]
    (files,) = downloads(page, book["out"])
    assert files["SVG"].startswith(b'<svg width="9pt"><style>')
    assert files["CSV"] == b"x,y\n1,2\n"
    assert "rounds T 1 seeds 0 to 2" in settings_below(page)  # of the run it draws
    assert "make notebook NAME=toy ARGS=" in without_tags(page)


def test_a_figure_of_a_cell_has_a_place_that_claims_name(book):
    page = book["notebooks/toy"]
    (image,) = re.findall(r'<img [^>]*alt="A curve."[^>]*>', page)
    assert 'src="../_images/toy-curve.svg"' in image
    assert "base64" not in page
    assert 'id="figure-toy-curve"' in page
    assert "<summary>Fig. 1: Data and code of this figure" in page
    assert 'href="notebooks/toy.html#figure-toy-curve"' in book["index"]  # claim C1 names it


def test_a_figure_of_a_note_needs_no_name_and_one_without_files_has_none(book):
    page = book["notebooks/note"]
    carried, bare = downloads(page, book["out"])
    assert carried["SVG"].startswith(b'<svg width="9pt"><style>')
    assert carried["CSV"] == b"x,y\n1,2\n"
    assert not bare
    assert re.findall(r'id="(figure-note-\d)"', page) == ["figure-note-1", "figure-note-2"]


def test_a_figure_that_no_page_draws_is_refused(build, tmp_path):
    (tmp_path / "notebooks").mkdir()
    text = toy_book.notebook((SHOW, toy_book.output(**{**CURVE, "name": "drawn"})))
    (tmp_path / "notebooks" / "toy.ipynb").write_text(text, encoding="utf-8")
    _, messages, _ = build(f"```{{toctree}}\nnotebooks/toy\n```\n\n{FIGURE}\n\n```{{claims}}\n```")
    assert "toy has no figure 'curve'; known figures: drawn." in messages
    assert "figure-toy-curve" in messages  # claim C1 names a figure that this page does not show


def test_previews_hold_what_links_lead_to(extension, tmp_path):
    (tmp_path / "a.html").write_text(
        '<article><a class="reference internal" href="b.html#thm">Theorem</a>'
        '<a class="reference internal" href="b.html#equation-e">(1)</a>'
        '<a class="reference internal" href="b.html#claim-x-C1">x/C1</a>'
        '<a class="reference internal" href="b.html#id3">[A, 2025]</a>'
        '<a class="reference internal" href="b.html#erratum-E1">E1</a>'
        '<a class="reference internal" href="b.html#section">Section</a></article>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text(
        '<article><div class="proof theorem admonition" id="thm"><p>Let <a href="#q">it</a>'
        '<div>be</div></p></div><div class="math" id="equation-e">\\[x \\label{e}\\]</div>'
        '<div class="proof theorem admonition" id="other">not linked</div>'
        '<div class="claim" id="claim-x-C1"><p>x/C1, <a href="#f">figure</a></p>'
        '<p>It <em>holds</em>.</p><div class="forest"><table class=forest-plot>'
        "<tbody style=--l:5%><tr><th>case"
        "<td><svg role=img></svg><td>2 <b>open</b><td>x.f below 2<td>3<td>fails</tr>"
        "<tr class=x><th><td><svg></svg><td>points</tr></table><details>rule</details>"
        "</div></div>"
        '<div class="citation" id="id3" role="doc-biblioentry"><p>A: <em>On it</em>.</p></div>'
        '<table><tr class="row-even" id="erratum-E1"><td><p>E1</p></td><td><p>a slip</p></td></tr>'
        "</table>"
        '<dl><dt id="term-drift">drift</dt><dd>moves <a class="reference internal" '
        'href="#term-drift">away</a></dd></dl></article>',
        encoding="utf-8",
    )
    assert extension("fedbook_previews").snippets(tmp_path) == {
        "b.html#claim-x-C1": '<div class="claim"><p>x/C1, figure</p><p>It <em>holds</em>.</p>'
        '<div class="forest"><table class=forest-plot><tbody style=--l:5%><tr><th>case'
        "<td><svg role=img></svg><td>2 <b>open</b></tr>"
        "<tr class=x><th><td><svg></svg><td>points</tr></table></div></div>",
        "b.html#erratum-E1": '<table><tr class="row-even"><td><p>E1</p></td>'
        "<td><p>a slip</p></td></tr></table>",
        "b.html#id3": '<div class="citation" role="doc-biblioentry">'
        "<p>A: <em>On it</em>.</p></div>",
        "b.html#equation-e": '<div class="math">\\[x \\]</div>',
        "b.html#term-drift": "<dl><dt>drift</dt><dd>moves away</dd></dl>",
        "b.html#thm": '<div class="proof theorem admonition"><p>Let it<div>be</div></p></div>',
    }


def test_settings_have_a_column_a_method_and_one_for_the_paper(extension):
    rows = extension("fedbook_figures").setting_rows
    a = {"method": "A", "rounds T": "100", "step size": "0.1"}
    b = {"method": "B", "rounds T": "100"}
    assert rows([a, {**a, "step size": "0.3"}, b], {"rounds T": "500"}) == [
        ["", "A", "B", "the paper or its code"],
        ["step size", "0.1, 0.3", "", ""],
        ["rounds T", "100", "100", "500"],
    ]
    assert rows([b, {**b, "method": "C"}], {}) == [["", "B, C"], ["rounds T", "100"]]


def test_settings_that_come_again_name_their_first_figure(extension):
    figures = extension("fedbook_figures")

    def cell(words):
        rows = figures.table(
            ("", "A"),
            [("rounds T", words)],
            (1, 1),
            "figure-settings",
        )
        return nodes.container("", nodes.target(ids=[f"figure-{words}"]), rows)

    cells = [cell("1"), cell("2"), cell("1")]
    figures.say_once(cells)
    (link,) = cells[2].findall(nodes.reference)
    assert link["refid"] == "figure-1"
    assert cells[1].astext().split() == ["A", "rounds", "T", "2"]
    assert cells[2].astext().strip() == "The settings are the same as in Fig. 1."


def test_the_papers_settings_are_those_that_claims_on_these_runs_name(extension):
    figures = extension("fedbook_figures")
    assert figures.of_paper("cmoo_sweeps", ["multi_mnist_fsmgda_steps1"])["rounds T"] == "500"
    assert figures.of_paper("cmoo_sweeps", ["no such run"]) == {}
    assert figures.of_paper("no_study", ["multi_mnist_fsmgda_steps1"]) == {}


def table_row(*texts):
    entries = [nodes.entry("", nodes.paragraph("", text)) for text in texts]
    return nodes.row("", *entries)


def test_a_line_of_the_errata_is_a_target_and_its_name_a_link(extension):
    book = extension("fedbook")
    app = SimpleNamespace(builder=SimpleNamespace(format="html"))
    errata = nodes.container("", table_row("Y1", "printed"), table_row("X", "other"))
    book.link_errata(app, errata, "book/errata")
    assert [row["ids"] for row in errata] == [["erratum-Y1"], []]
    statements = nodes.container("", table_row("X", "right (Y1, Y12)"))
    book.link_errata(app, statements, "book/statements")
    links = {link.astext(): link["refuri"] for link in statements.findall(nodes.reference)}
    assert links == {"Y1": "errata.html#erratum-Y1", "Y12": "errata.html#erratum-Y12"}
    assert statements[0][1].astext() == "right (Y1, Y12)"


def panels(size):
    """A figure with two panels that share an axis, as an SVG."""
    fig = plot.figure(size)
    left, right = fig.subplots(1, 2, sharey=True)
    left.plot([0, 1], label="one line")
    right.plot([1, 0], label="another line")
    left.set_ylabel("height")
    handles = [*left.get_lines(), *right.get_lines()]
    fig.legend(handles=handles, loc="outside lower center", ncols=2)
    return plot.picture(fig, "svg").decode()


def test_a_phone_gets_the_panels_of_a_wide_figure_below_each_other(extension):
    narrow = extension("fedbook_narrow").narrow
    with matplotlib.rc_context():
        stacked = narrow(panels((8.0, 3.0)))
    width, height = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', stacked).groups()
    assert float(width) < 0.6 * 8.0 * 72  # a phone is about 360 pixels, 270 points, wide
    assert float(height) > 1.8 * 3.0 * 72
    places = re.findall(r'<svg x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', stacked)
    first, axis, second, *entries = [tuple(map(float, place)) for place in places]
    assert first[:2] == (0, 0)
    assert axis[0] == 0  # the second panel has no numbers of its own
    assert second[0] == axis[2]
    assert len(entries) == 2
    for x, _, length in entries:
        assert x + length <= float(width) + 1


def test_a_figure_that_fits_a_phone_or_has_one_panel_stays(extension):
    narrow = extension("fedbook_narrow").narrow
    with matplotlib.rc_context():
        single = plot.figure((8.0, 3.0))
        single.subplots()
        assert narrow(panels((4.0, 3.0))) is None
        assert narrow(plot.picture(single, "svg").decode()) is None
