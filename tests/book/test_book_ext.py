"""The book's Sphinx extension, in small builds with made-up results."""

import re
from pathlib import Path

import pytest
import toy_book

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(tmp_path, monkeypatch):
    return toy_book.prepare(tmp_path, monkeypatch)


def test_result_role_shows_the_number_and_where_it_comes_from(build):
    status, messages, page = build("The gap is {result}`toy/gap:.2f`.")
    assert status == 0, messages
    (title, text) = re.search(r'<span class="result" title="([^"]*)">([^<]*)</span>', page).groups()
    assert text == "0.51"
    assert title == ("nats; 95 % interval 0.40 to 0.60; 2 seeds; commit 0123456789ab; device cpu")


def test_result_role_shows_a_number_of_the_papers_setting(build, tmp_path):
    number = {"value": 0.25, "low": 0.2, "high": 0.3, "per_seed": [0.2, 0.3], "unit": "nats"}
    (tmp_path / "results" / "toy" / "paper").mkdir()
    path = tmp_path / "results" / "toy" / "paper" / "numbers.json"
    toy_book.seal(path, {**toy_book.NUMBERS, "numbers": {"gap": number}})
    status, messages, page = build("From {result}`toy/gap:.2f` to {result}`toy@paper/gap:.2f`.")
    assert status == 0, messages
    assert re.findall(r'<span class="result" title="[^"]*">([^<]*)</span>', page) == [
        "0.51",
        "0.25",
    ]


def test_seeds_role_counts_the_seeds_of_a_stored_run(build):
    status, messages, page = build("Over {seeds}`toy/old` seeds.")
    assert status == 0, messages
    found = re.search(r'<span class="result" title="([^"]*)">([^<]*)</span>', page).groups()
    assert found == ("the seeds 0, 1, 2 of toy/old", "3")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{result}`toy/gep:.2f`", "toy has no number 'gep'; keys that look like it: gap."),
        ("{result}`tay/gap:.2f`", "tay/full/numbers.json must exist"),
        ("{result}`toy@paper/gap:.2f`", "toy/paper/numbers.json must exist"),
        ("{result}`toy/gap:.2q`", "format"),
        ("{seeds}`toy/odl`", "toy has no run 'odl'; runs that look like it: old."),
        ("```{params} tay\n```", "there is no study 'tay'; known studies: toy."),
        ("```{themed-figure} toy/kurve\n:alt: x\n\nCaption\n```", "no figure 'kurve'"),
        ("```{themed-figure} toy/curve\n\nCaption\n```", "needs :alt:"),
        ("{claim}`toy/C9`", "there is no claim 'toy/C9'; ids that look like it: toy/C"),
    ],
)
def test_what_is_missing_stops_the_build(build, text, sentence):
    status, messages, _ = build(text)
    assert status != 0
    assert sentence in messages


def test_claims_stand_failing_first_with_anchors(build):
    status, messages, page = build(
        "```{claims}\n```\n\nSee {claim}`toy/C1`.\n\n```{scoreboard}\n```"
    )
    assert status == 0, messages
    assert re.findall(r'id="(claim-[^"]*)"', page) == [
        "claim-toy-C3",
        "claim-toy-C1",
        "claim-toy-C2",
    ]
    assert 'href="#claim-toy-C1"' in page
    assert 'class="badge-fed is-not-reproduced">not reproduced<' in page
    assert "Rule: " in page
    assert re.search(r"Stored runs \(1\): </strong><code[^>]*>(<span[^>]*>)?old<", page)


def test_scoreboard_says_why_and_can_be_narrowed(build):
    status, messages, page = build("```{claims}\n```\n\n```{scoreboard}\n```")
    assert status == 0, messages
    board = page[page.index("claims-scroll") :]
    rows = re.findall(r'<tr class="([^"]*)">(.*?)</tr>', board, flags=re.S)[1:]
    assert [re.search(r"claim-[\w-]+ paper-\w+", kinds)[0] for kinds, _ in rows] == [
        "claim-not-reproduced paper-ours",
        "claim-reproduced paper-w",
        "claim-not-judged paper-w",
    ]
    assert all("does not hold: small" in cells for kinds, cells in rows if "not-rep" in kinds)
    others = [cells for kinds, cells in rows if "not-rep" not in kinds]  # no reason: what came out
    assert len(others) == 2
    assert all("0.512 [0.4, 0.6] nats" in cells for cells in others)
    assert 'href="#claim-toy-C3"' in rows[0][1]
    counts = page[: page.index("claims-scroll")]
    cells = re.findall(r"<td><p>([^<]*)</p></td>", counts)[-12:]
    assert cells[:4] == ["FedSGM, workshop", "0", "1", "1"]
    assert cells[4:8] == ["this book", "1", "0", "0"]
    assert cells[8:] == ["All", "1", "1", "1"]
    assert "Of 3 claims the stored runs can judge 2: 1 reproduced, 1 not reproduced." in page
    bars = re.findall(r'<div class="claims-filter" hidden>.*?</p></div>', page)
    assert len(bars) == 2
    choices = re.findall(r'data-show="([^"]*)" aria-pressed="(\w+)"', bars[1])
    assert choices == [
        ("", "true"), ("paper-w", "false"), ("paper-ours", "false"),
        ("", "true"), ("claim-not-reproduced", "false"), ("claim-reproduced", "false"),
        ("claim-not-judged", "false"),
    ]  # fmt: skip


def test_paper_table_computes_agreement(build):
    status, messages, page = build("```{paper-table} toy\n```")
    assert status == 0, messages
    found = re.findall(r'class="badge-fed[^"]*">([^<]*)<', page)
    assert found == ["undecided", "agrees", "differs", "not printed"]
    assert "0.512 [0.4, 0.6] nats" in page


def test_provenance_and_profiles(build):
    status, messages, page = build("```{provenance} toy\n```\n\n```{params} toy\n```")
    assert status == 0, messages
    assert "0123456789ab, with uncommitted changes" in page
    assert "never recomputed" in page
    assert "1 of 3 runs" in page
    cells = re.findall(r"<td><p>(.*?)</p></td>", page)
    assert cells[-2:] == ["2", "30"]


def test_a_number_changed_by_hand_stops_the_build(build, tmp_path):
    path = tmp_path / "results" / "toy" / "full" / "numbers.json"
    path.write_text(path.read_text(encoding="utf-8").replace("0.512", "0.312"), encoding="utf-8")
    status, messages, _ = build("{result}`toy/gap:.2f`")
    assert status != 0
    assert "must agree with its digest" in messages


def test_themed_figure_is_one_figure_with_two_stable_pictures(build, tmp_path):
    figure = "```{themed-figure} toy/curve\n:alt: A curve\n:name: fig-curve\n\nDown.\n```"
    text = f"{figure}\n\n{{numref}}`fig-curve`"
    bytes_of = []
    for _ in range(2):
        for old in tmp_path.glob("_build/figures/*"):
            old.unlink()
        status, messages, page = build(text)
        assert status == 0, messages
        pictures = sorted(tmp_path.glob("_build/figures/*-[dl]*.svg"))  # not the one to download
        bytes_of.append([p.read_bytes() for p in pictures])
    assert bytes_of[0] == bytes_of[1]
    assert len(bytes_of[0]) == 2
    assert bytes_of[0][0] != bytes_of[0][1]
    images = re.findall(r"<img [^>]*>", page)
    assert ["fig-light" in i for i in images] == [True, False]
    assert ["fig-dark" in i for i in images] == [False, True]
    assert all('alt="A curve"' in image for image in images)
    assert page.count("<figcaption>") == 1
    assert "Fig. 1" in page


def test_notebook_links_show_the_command(build, tmp_path):
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    (tmp_path / "notebooks" / "src" / "toy.py").write_text("x = 1\n", encoding="utf-8")
    status, messages, page = build("```{notebook-links} toy\n```")
    assert status == 0, messages
    assert re.search(r'href="_downloads/[0-9a-f]+/toy.py"', page)
    assert re.search(r'href="_downloads/[0-9a-f]+/[a-z]+.json"', page)
    text = re.sub(r"<[^>]*>", "", page)
    assert "make notebook NAME=toy ARGS=" in text


def test_mathematics_comes_from_the_build_itself(build, tmp_path):
    status, messages, page = build("$x^2$")
    assert status == 0, messages
    (address,) = re.findall(r'src="([^"]*mathjax[^"]*)"', page)
    assert (tmp_path / "out" / address.partition("?")[0]).stat().st_size > 100_000
    assert list((tmp_path / "out/_static/vendor/mathjax/output/chtml/fonts/woff-v2").glob("*.woff"))


def test_docstrings_are_made_safe(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import fedbook_docstrings

    lines = [
        "The norm |w0 - w*| of `w*`, of w_ and of w_t.", "",
        "    1  sample *", "    2      E times: u", "",
        "After: *args.", ">>> 2 * 3", "6",
    ]  # fmt: skip
    fedbook_docstrings.prepare(None, "class", "x", None, None, lines)
    assert lines == [
        r"The norm \|w0 - w\*\| of `w*`, of w\_ and of w_t.", "",
        "::", "", "    1  sample *", "    2      E times: u", "",
        r"After: \*args.", ">>> 2 * 3", "6",
    ]  # fmt: skip


def test_formulas_emphasis_and_tables_of_docstrings_are_rendered(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import fedbook_docstrings

    lines = [
        r"Ye, Cui, *Sample-based", r"SSCA* (C): $\lambda_t = |w|$ is",
        "at most `$` of w* and F*.", "",
        "Parameters", "----------",
        "u, v : where the", "    steps start.", "", "Raises", "------", "ValueError",
    ]  # fmt: skip
    fedbook_docstrings.prepare(None, "class", "x", None, None, lines)
    assert lines == [
        r"Ye, Cui, *Sample-based SSCA* (C): :math:`\lambda_t = |w|` is",
        r"at most `$` of w\* and F\*.", "",
        "Parameters", "----------",
        "u, v", "    where the", "    steps start.", "", "Raises", "------", "ValueError",
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
        ("(x: float)", "(x: float)"),
        (None, None),
    ],
)
def test_annotations_that_are_checked_go_by_their_short_names(monkeypatch, signature, short):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import fedbook_docstrings

    given = ("class", "x", None, None, signature, None)
    assert fedbook_docstrings.shorten(None, *given) == (short, None)
