"""The table of planted faults, in small builds."""

import re

import pytest
import toy_book

PROVENANCE = {"commit": "0123456789ab", "dirty": False, "date": "2026-01-02", "wall_s": 3.0}
SHORT = {"name": "lr=<b>", "kind": "accepted", "said": ""}


@pytest.fixture
def build(tmp_path, monkeypatch):
    make = toy_book.prepare(tmp_path, monkeypatch)
    (tmp_path / "results" / "faults").mkdir()

    def made(text, **scripts):
        for name, short in scripts.items():
            count = {"good": 7, "obscure": 0, "unnamed": 0, "accepted": len(short)}
            content = {"kind": "faults", "name": name, "what": f"bad {name}", "short": short}
            content |= {"tried": 7 + len(short), **count, "provenance": PROVENANCE}
            toy_book.seal(tmp_path / "results" / "faults" / f"{name}.json", content)
        return make(text)

    return made


def test_every_script_has_its_line_and_what_fell_short_is_listed(build):
    status, messages, page = build("```{planted-faults} a b\n```", a=[], b=[SHORT])
    assert status == 0, messages
    rows = re.findall(r"<tr.*?</tr>", page, flags=re.S)
    texts = [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in rows]
    assert texts[1:] == [
        "Bad a 7 7 – tests/faults/a.py 2026-01-02, 0123456",
        "Bad b 8 7 1 accepted tests/faults/b.py 2026-01-02, 0123456",
        "All 15 14 1",
    ]
    assert page.count("<details>") == 1
    assert "Bad b: 1 fell short" in page
    assert "lr=&lt;b&gt;" in page


def test_the_page_must_name_all_that_is_stored(build):
    status, messages, _ = build("```{planted-faults} a\n```", a=[], b=[])
    assert status != 0
    assert "results/faults has b, which no line names" in messages
