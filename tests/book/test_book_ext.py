"""The book's Sphinx extension, in small builds with made-up results."""

import importlib
import json
import re
from pathlib import Path
from typing import NamedTuple

import matplotlib
import pandas as pd
import pytest
import yaml
from jinja2 import Template

from papers.kit import plot
from tests.helpers import toy_book

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(tmp_path, monkeypatch):
    return toy_book.prepare(tmp_path, monkeypatch)


#: Directives of which one build shows all, and none changes what another shows.
TEXT = """
Roles: from {result}`toy/gap:.2f` to {result}`toy@paper/gap:.2f` over {seeds}`toy/old` seeds.

```{claims}
```

See {claim}`toy/C1`.

{claims-data}`claims.csv`

```{claims-columns}
```

```{provenance} toy
```

```{notebook-links} toy
```

```{benchmark} peers
```

```{citation}
```
"""
HOME = "https://github.com/owner/name"
REPOSITORY = """
fedbook_project = "project.toml"
html_theme_options = {"launch_buttons": {"colab_url": "https://colab.test"}}
"""


def measured(date, ours, **peers):
    """A block of measurements on one machine."""
    machine = {"instructions": "AVX2", "torch": "2.13", "commit": "0123456789ab", "date": date}
    times = {"fedlib FedAvg": ours, "fedlib FedSGM": 3.0, **peers}
    entries = {name: {"cpu_ms": time} for name, time in times.items()}
    results = {"W1": {"title": "a small case", "entries": entries}}
    return {"peers": {"machine": machine, "results": results}}


def append(path, text):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A page with all of `TEXT`, and the folder that it was built in."""
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        build = toy_book.prepare(folder, patch)
        ends = {"value": 0.25, "low": 0.2, "high": 0.3, "per_seed": [0.2, 0.3]}
        number = {**toy_book.NUMBERS["numbers"]["gap"], **ends}
        paper = folder / "results" / "toy" / "paper"
        paper.mkdir()
        toy_book.seal(paper / "numbers.json", {**toy_book.NUMBERS, "numbers": {"gap": number}})
        older = measured("2026-01-02", 1.0, jax=2.0)
        newer = measured("2026-03-04", 3.0, jax=4.0, loop=2.0)
        benchmarks = json.dumps({"Old chip": older, "New chip": newer})
        (folder / "benchmarks").mkdir()
        (folder / "benchmarks" / "results.json").write_text(benchmarks, encoding="utf-8")
        project = f'[project]\nurls = {{Repository = "{HOME}/"}}\n'
        (folder / "project.toml").write_text(project, encoding="utf-8")
        append(folder / "conf.py", REPOSITORY)
        status, messages, page = build(TEXT)
    assert status == 0, messages
    return page, folder / "out"


def test_roles_show_numbers_and_where_they_come_from(shared):
    page, _ = shared
    (sentence,) = re.findall(r"<p>Roles: .*?</p>", page, flags=re.S)
    shown = re.findall(r'<abbr class="result" title="([^"]*)">([^<]*)</abbr>', sentence)
    assert [text for _, text in shown] == ["0.51", "0.25", "3"]
    origin = "nats; 95 % interval 0.40 to 0.60; 2 seeds; commit 0123456789ab; device cpu"
    assert shown[0][0] == origin
    assert shown[2][0] == "the seeds 0, 1, 2 of toy/old"


def test_benchmarks_stand_newest_first_beside_the_fastest_peer(shared):
    page, _ = shared
    assert page.index("New chip") < page.index("Old chip")
    assert re.findall(r"<td><p>(\d\.\d\d)</p></td>", page) == ["1.50", "0.50"]


MISSING = [
    ("{result}`toy/gep:.2f`", "toy has no number 'gep'; keys that look like it: gap."),
    ("{result}`tay/gap:.2f`", "tay/full/numbers.json must exist"),
    ("{result}`toy@paper/gap:.2f`", "toy/paper/numbers.json must exist"),
    ("{result}`toy/gap:.2q`", "format"),
    ("{seeds}`toy/odl`", "toy has no run 'odl'; runs that look like it: old."),
    ("```{themed-figure} tay/curve\n:alt: x\n\nCaption\n```", "known studies: toy."),
    ("```{themed-figure} toy/kurve\n:alt: x\n\nCaption\n```", "no figure 'kurve'"),
    ("```{themed-figure} toy/curve\n\nCaption\n```", "needs :alt:"),
    ("{claim}`toy/C9`", "there is no claim 'toy/C9'; ids that look like it: toy/C"),
    ("```{benchmark} nothing\n```", "benchmark must be one of peers, start, scale, got 'nothing'"),
]


def test_what_is_missing_stops_the_build(build):
    status, messages, _ = build("\n\n".join(text for text, _ in MISSING))
    assert status != 0
    assert not [sentence for _, sentence in MISSING if sentence not in messages]


def test_claims_stand_failing_first_with_anchors(shared):
    page, folder = shared
    assert re.findall(r'id="(claim-[^"]*)"', page) == [
        "claim-toy-C3",
        "claim-toy-C1",
        "claim-toy-C2",
    ]
    assert 'href="#claim-toy-C1"' in page
    assert 'class="badge-fed is-not-reproduced">not reproduced: 1 fails<' in page
    assert "<svg role=img aria-label=fails>" in page
    assert "<td>gap below 0.1<td>" in page
    assert "In all readings these claims have 2 parts that are judged: 1 holds, 1 fails." in page
    assert (folder / "_static" / "forest.css").is_file()


def test_the_parts_of_all_claims_can_be_downloaded(shared):
    page, folder = shared
    (address,) = re.findall(r'href="(_downloads/[^"]*claims\.csv)"', page)
    rows = pd.read_csv(folder / address)
    assert [*rows["claim"]] == ["toy/C1", "toy/C2", "toy/C3"]
    assert [*rows["state"]] == ["holds", "not judged", "fails"]
    assert all(f">{column}<" in page for column in rows.columns)


def test_claims_are_counted_and_can_be_narrowed(shared):
    page, _ = shared
    assert "The stored runs can judge 2 of 3 claims: 1 reproduced, 1 not reproduced." in page
    (bar,) = re.findall(r'<div class="claims-filter" hidden>.*?</p></div>', page)
    choices = re.findall(r'data-show="([^"]*)" aria-pressed="(\w+)"', bar)
    assert choices == [
        ("", "true"), ("paper-w", "false"), ("paper-ours", "false"),
        ("", "true"), ("claim-not-reproduced", "false"), ("claim-reproduced", "false"),
        ("claim-not-judged", "false"),
    ]  # fmt: skip


def test_provenance(shared):
    page, _ = shared
    assert page.count('class="notebook-links') == 1  # in the fold, not after it again
    fold = page.partition("<summary>Reproduce this page</summary>")[2].partition("</details>")[0]
    assert 'class="notebook-links' in fold
    assert "make notebook NAME=toy" in re.sub(r"<[^>]*>", "", fold)
    assert "after 0123456789ab" in fold
    assert "never recomputed" in page
    assert "1 of 3 runs" in page


def test_a_number_changed_by_hand_stops_the_build(build, tmp_path):
    path = tmp_path / "results" / "toy" / "full" / "numbers.json"
    path.write_text(path.read_text(encoding="utf-8").replace("0.512", "0.312"), encoding="utf-8")
    status, messages, _ = build("{result}`toy/gap:.2f`")
    assert status != 0
    assert "must agree with its digest" in messages


class Rebuilt(NamedTuple):
    """A page that was built twice with another word, and its picture after each build."""

    pages: list[str]
    pictures: list[bytes]


def curve():
    """What a page carries along of its figure."""
    with matplotlib.rc_context():
        figure = plot.figure()
        figure.subplots().plot([3.0, 1.0])
        return {**plot.files_of(figure, None), "name": "curve", "runs": ["old"], "profile": "full"}


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    """A page with a figure, of a project that has no address."""
    folder = tmp_path_factory.mktemp("rebuilt")
    result = Rebuilt([], [])
    figure = "```{themed-figure} toy/curve\n:alt: A curve\n:name: fig-curve\n\nDown.\n```"
    with pytest.MonkeyPatch.context() as patch:
        build = toy_book.prepare(folder, patch)
        (folder / "other.md").write_text("---\norphan: true\n---\n# Other\n", encoding="utf-8")
        (folder / "project.toml").write_text("[project]\n", encoding="utf-8")
        append(folder / "conf.py", f"{REPOSITORY}\nexclude_patterns.append('notebooks')\n")
        (folder / "notebooks").mkdir()
        executed = toy_book.notebook(("plot.show(fig)", toy_book.output(**curve())))
        (folder / "notebooks" / "toy.ipynb").write_text(executed, encoding="utf-8")
        for text in ("Before.", "After."):
            for picture in folder.glob("_build/figures/*"):
                picture.unlink()
            status, messages, page = build(f"{figure}\n\n{{numref}}`fig-curve`\n\n{text}")
            assert status == 0, messages  # a warning is an error
            (picture,) = folder.glob("_build/figures/*.svg")
            result.pages.append(page)
            result.pictures.append(picture.read_bytes())
    return result


def test_a_page_that_changes_is_built_again_without_a_warning(rebuilt):
    assert "Before." in rebuilt.pages[0]
    assert "After." in rebuilt.pages[1]


def test_themed_figure_is_one_stable_picture_for_both_themes(rebuilt):
    first_picture, second_picture = rebuilt.pictures
    assert first_picture == second_picture
    assert b"@media (prefers-color-scheme:dark)" in first_picture
    for colors in plot.STYLES.values():
        assert all(color.encode() in first_picture for color in colors.values())
    page = rebuilt.pages[1]
    (image,) = re.findall(r'<img [^>]*alt="A curve"[^>]*>', page)
    assert "dark-light" in image  # the theme puts no plate behind it
    assert page.count("<figcaption>") == 1
    assert "Fig. 1" in page


def test_docstrings_are_made_safe(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import fedbook_api

    lines = [
        "The norm |w0 - w*| of `w*`, of w_ and of w_t,", "and of *args.", "",
        "    1  sample *", "    2      E times: u", "", ">>> 2 * 3", "6",
    ]  # fmt: skip
    fedbook_api.prepare(
        None,
        "class",
        "x",
        None,
        None,
        lines,
    )
    assert lines == [r"The norm \|w0 - w\*\| of `w*`, of w\_ and of w_t,", r"and of \*args."]


def test_formulas_emphasis_and_tables_of_docstrings_are_rendered(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import fedbook_api

    lines = [
        r"Ye, Cui, *Sample-based", r"SSCA* (C): $\lambda_t = |w|$ is",
        "at most `$` of w* and F*.", "",
        "Parameters", "----------",
        "u, v : where the", "    steps start.", "w : tuple of float", "    The model.",
        "", "Raises", "------", "ValueError",
    ]  # fmt: skip
    fedbook_api.prepare(
        None,
        "class",
        "x",
        None,
        None,
        lines,
    )
    assert lines == [
        r"Ye, Cui, *Sample-based SSCA* (C): :math:`\lambda_t = |w|` is",
        r"at most `$` of w\* and F\*.", "",
        "Parameters", "----------",
        "u, v", "    where the", "    steps start.", "w", "    The model.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("signature", "short"),
    [
        ("(lr: ~typing.Annotated[float, Positive] = 1.0)", "(lr: Positive = 1.0)"),
        ("(n: ~typing.Annotated[int, Count] | None)", "(n: Count | None)"),
        (
            "(levels: float | Annotated[tuple[float, ...], Takes])",
            "(levels: float | tuple[float, ...])",
        ),
        ("(x: float) -> ~a.Annotated[~b.PowerLaw, Averaging]", "(x: float) -> Averaging"),
        ("(x: ~a.Mapping = <factory>)", "(x: ~a.Mapping = factory)"),
        ("(a=<class 'torch.nn.ReLU'>)", "(a=ReLU)"),
        ("(x: ~np.ndarray[tuple[Any, ...], ~np.dtype[~np.float64]])", "(x: ndarray)"),
        ("(x: float)", "(x: float)"),
        (None, None),
    ],
)
def test_annotations_that_are_checked_go_by_their_short_names(monkeypatch, signature, short):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import fedbook_api

    arguments = ("class", "x", None, None, signature, None)
    assert fedbook_api.shorten(None, *arguments) == (short, None)
    plain = fedbook_api.shorten(None, "function", *arguments[1:])
    assert plain == (None, None) if signature is None else ":" not in plain[0]


def test_links_to_the_repository_follow_from_one_address(shared):
    page, _ = shared
    links = set(re.findall(r'href="(https://github.com/[^"]*)"', page))
    assert {HOME, f"{HOME}/edit/main/index.md"} <= links
    assert any(link.startswith(f"{HOME}/issues/new") for link in links)
    assert "The repository of this book" in page


def test_without_an_address_there_is_no_such_link(rebuilt):
    assert "github.com" not in rebuilt.pages[1]


def test_every_page_says_licence_version_and_how_to_cite(shared):
    page, _ = shared
    fields = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (footer,) = re.findall(r'<div class="extra_footer">(.*?)</div>', page, flags=re.S)
    words = re.sub(r"<[^>]*>", "", footer)
    assert f"{fields['license']} licence · version {fields['version']}" in words
    assert "How to cite" in words
    assert fields["title"] in re.sub(r"<[^>]*>", "", page)


def test_of_a_notebook_the_source_is_edited(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    edited = Template(importlib.import_module("fedbook_repository").SOURCE)
    assert edited.render(file_name="notebooks/bounds.ipynb") == "notebooks/src/bounds.py"
    assert edited.render(file_name="book/rerun.md") == "book/rerun.md"
