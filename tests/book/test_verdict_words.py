"""A word of the prose about a claim is what the claim's verdict says, on every page."""

import pytest

from tests.helpers import prose
from tests.helpers.verdict_words import contradicts, units, uses

PAGES = prose.pages()


@pytest.fixture(scope="module")
def outcomes(judged):
    return {claim: [*readings.values()] for claim, readings in judged.items()}


def wrong(text, outcomes):
    """A sentence for every word that contradicts what it is about."""
    return [
        f"{use.says!r} contradicts the verdict on {' and '.join(use.claims)}, in {use.sentence!r}"
        for use in uses(text)
        if contradicts(use, outcomes)
    ]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_words_and_verdicts_agree(page, outcomes):
    assert not wrong(PAGES[page], outcomes), page


@pytest.mark.parametrize(
    ("page", "words", "instead"),
    [
        ("book/fedcmoo/index.md", "this is open", "this is reproduced"),
        ("book/fedcmoo/index.md", "| Confirmed: with", "| Not reproduced: with"),
        ("book/fedsgm/index.md", "tuned penalty is open", "tuned penalty is confirmed"),
        ("book/index.md", "the claim is mixed", "the claim is reproduced"),
        ("book/ssca/index.md", "| Yes ({claim}`ssca/C1`)", "| No ({claim}`ssca/C1`)"),
        ("book/ssca/index.md", "| Yes, without and", "| No, without and"),
        ("book/ssca/index.md", "| Yes ({claim}`ssca/C1`)", "| It is false ({claim}`ssca/C1`)"),
        ("book/ssca/index.md", "| Yes ({claim}`ssca/C1`)", "| This is wrong ({claim}`ssca/C1`)"),
        ("book/fedsgm/index.md", "paper's rewards is open", "paper's rewards is confirmed"),
        ("notebooks/src/fairness.py", "On thirty seeds it is not:", "On thirty seeds it holds:"),
        ("notebooks/src/ssca_tradeoff.py", "is judged on", "is not judged on"),
    ],
)
def test_a_planted_word_is_noticed(page, words, instead, outcomes):
    assert words in PAGES[page]
    assert wrong(PAGES[page].replace(words, instead), outcomes)


def test_quotes_negations_and_code_are_read_as_such():
    text = """
The paper calls this "reproduced", `reproduced` and not reproduced ({claim}`a/C1`), $undecided$.

* first, which is open:
  still the first ({claim}`a/C2`, {claim}`a/C3`)
* it was never confirmed.

| claim | word |
| --- | --- |
| {claim}`a/C4` | nor refuted. Judged elsewhere ({claim}`a/C5`) |
"""
    assert [(use.says, use.claims) for use in uses(text)] == [
        ("not reproduced", ("a/C1",)),
        ("open", ("a/C2", "a/C3")),
        ("reproduced", ("a/C4", "a/C5")),
        ("judged", ("a/C5",)),
    ]
    assert len([*units(text)]) == 5
