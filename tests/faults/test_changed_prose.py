"""A drawn sample of the changes of typed numbers that `changed_prose.py` plants."""

import changed_prose
import prose
import typed_numbers

DRAWN = 40


def test_changed_numbers_are_noticed():
    class options:
        count, seed = DRAWN, 0

    found = list(changed_prose.outcomes(options))
    assert len(found) == DRAWN + len(changed_prose.UNSEEN)
    short = [outcome for outcome in found if outcome.kind != "good"]
    assert {o.name.split(": ")[1] for o in short} == set(changed_prose.UNSEEN), short


def test_a_number_and_its_line_changed_together_are_noticed_where_it_is_held():
    """A line that says the same wrong number as the sentence: what it rests on says no."""
    page, lines = "book/fedsgm/errata.md", typed_numbers.listed()
    text = prose.pages()[page].replace("1.19 at", "1.23 at")
    own = {
        near: tuple(
            e._replace(numbers=tuple(n.replace("1.19", "1.23") for n in e.numbers)) for e in line
        )
        for near, line in lines[page].items()
    }
    assert not typed_numbers.unlisted({page: text}, {page: own})
    said = changed_prose.said(page, text, {page: own})
    assert "1.23 must be shown by note_soft_switching" in said
