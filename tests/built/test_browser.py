"""The built book in a browser: mathematics and figures, and no request to outside."""

import re

import pytest

from tests.helpers.built_book import HTML, IN_A_BROWSER, SET, WHOLE, pages, sampled, url

pytestmark = IN_A_BROWSER
LOOKED_AT = sampled(pages("book/**/*.html", "notebooks/**/*.html"), 6)
#: Pictures that are shown, and those among them that are not there.
PICTURES = """async () => {
  for (const i of document.images) i.loading = "eager";
  const shown = [...document.images].filter((i) => getComputedStyle(i).display !== "none");
  await Promise.all(shown.map((i) => i.decode().catch(() => null)));
  return [shown.length, shown.filter((i) => !i.naturalWidth).map((i) => i.src)];
}"""


@pytest.fixture(scope="module")
def visit(browser):
    """Opens a page, its formulas set; gives it, what failed, and what was asked outside."""
    failed = []
    outside = []

    def asked(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            outside.append(request.url)

    def missed(request):
        if request.failure != "net::ERR_ABORTED":  # the page before was left while its icon came
            failed.append(request.url)

    with browser.new_page() as page:
        page.add_init_script(WHOLE)
        page.clock.install()
        page.on("request", asked)
        page.on("requestfailed", missed)

        def load(name):
            failed.clear()
            outside.clear()
            page.goto(url(name))
            page.evaluate(SET)
            page.clock.fast_forward(15_000)  # what waits for its time happens
            return page, failed, outside

        yield load


@pytest.mark.parametrize("name", LOOKED_AT)
def test_page_renders_offline(visit, name):
    page, failed, outside = visit(name)
    shown, broken = page.evaluate(PICTURES)
    assert not outside
    assert not failed
    assert not broken
    source = (HTML / name).read_text(encoding="utf-8")
    formulas = len(re.findall(r'class="math notranslate', source))
    assert page.locator("mjx-container").count() >= formulas
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    if re.search(r'<img [^>]*class="fig\b', source):
        assert shown > 0


UNSET = "document.querySelectorAll('mjx-lazy')"
IN_SIGHT = f"""() => ![...{UNSET}].some((formula) => {{
  const {{ top, bottom }} = formula.getBoundingClientRect();
  return formula.checkVisibility() && bottom > 0 && top < innerHeight;
}})"""


def test_formulas_are_set_when_they_come_into_sight(browser):
    with browser.new_page() as page:
        page.goto(url("notebooks/note_fedfw.html"))
        page.evaluate(SET)
        page.wait_for_function(IN_SIGHT)
        left = page.evaluate(f"{UNSET}.length")
        formulas = page.locator("mjx-container").count()
        assert 0 < left < formulas
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_function(f"(left) => {UNSET}.length < left", arg=left)
        page.wait_for_function(IN_SIGHT)


def test_what_fails_and_a_request_to_outside_would_be_seen(visit):
    page, failed, outside = visit("book/references.html")
    pictures = ["http://outside.invalid/picture.png", url("book/nowhere.png")]
    page.evaluate(
        "(all) => all.forEach((src) => document.body.append(Object.assign(new Image(), { src })))",
        pictures,
    )
    assert page.evaluate(PICTURES)[1] == pictures
    assert outside == pictures[:1]
    assert sorted(failed) == sorted(pictures)


NARROWED = """() => {
  const bar = document.querySelector(".claims-filter");
  const claims = document.querySelectorAll(".claims > .claim");
  return {
    rows: [...claims].map((claim) => [!claim.hidden, claim.className]),
    pressed: [...bar.querySelectorAll("[aria-pressed=true]")].map((b) => b.dataset.show),
  };
}"""


@pytest.mark.parametrize(
    "chosen",
    [
        ["claim-mixed"],
        ["paper-f"],
        ["paper-c", "claim-reproduced"],
        ["rule-older"],
        ["paper-f", ""],
    ],
)
def test_claims_can_be_narrowed_to_a_paper_and_to_a_verdict(visit, chosen):
    page, _, _ = visit("book/claims.html")
    bar = page.locator(".claims-filter").first
    for choice in chosen:
        bar.locator(f'[data-show="{choice}"]').first.click()
    shown_kinds = {x for x in chosen if x} if chosen[-1] else set()
    narrowed = page.evaluate(NARROWED)
    for shown, kinds in narrowed["rows"]:
        assert shown == (shown_kinds <= set(kinds.split())), kinds
    rows = len(narrowed["rows"])
    left = sum(shown for shown, _ in narrowed["rows"])
    assert left > 0
    words = f"{left} claims" if left == rows else f"{left} of {rows} claims"
    assert bar.locator(".claims-count").inner_text() == words
    assert {x for x in narrowed["pressed"] if x} == shown_kinds


@pytest.mark.parametrize("by", ["pointer", "keyboard"])
@pytest.mark.parametrize(
    ("target", "words"), [("#equation-eq-soft-regret", "("), ("#soft-theorem", "Theorem")]
)
def test_a_link_shows_what_it_leads_to(visit, target, words, by):
    page, failed, outside = visit("notebooks/note_soft_switching.html")
    link = page.locator(f'.bd-article a.internal[href*="{target}"]').first
    link.hover() if by == "pointer" else link.focus()
    page.clock.fast_forward(3000)
    page.wait_for_selector("#preview:not([hidden]) mjx-container")
    assert link.get_attribute("aria-describedby") == "preview"
    text = page.locator("#preview").text_content()
    assert words in text
    assert "\\(" not in text  # typeset, not as it is written
    page.keyboard.press("Escape")
    assert page.locator("#preview").is_hidden()
    assert not failed
    assert not outside
