"""When the rules of claims were fixed or changed, in small builds."""

import json
import re
from dataclasses import asdict

import pytest
import toy_book

from papers.kit.record import Entry

PLACE = """
from pathlib import Path
from papers.kit import record

record.path_of = lambda study: Path({path!r})
"""
FIRST = Entry("2026-01-01", "later", "a", "`gap` below 2.", "reproduced", "1 of 1")
SECOND = Entry("2026-01-03", "together", "b", "`gap` below 1.", "partly", "1 of 2", "half of $f$")
THIRD = Entry("2026-01-05", "earlier", "b", "`gap` below 1.", "undecided", "", "wider intervals")


@pytest.fixture
def build(tmp_path, monkeypatch):
    make = toy_book.prepare(tmp_path, monkeypatch)
    path = tmp_path / "record.json"
    conf = tmp_path / "conf.py"
    conf.write_text(
        conf.read_text(encoding="utf-8") + PLACE.format(path=str(path)), encoding="utf-8"
    )

    def made(text, **entries):
        content = {f"toy/{name}": [asdict(e) for e in own] for name, own in entries.items()}
        path.write_text(json.dumps(content), encoding="utf-8")
        status, messages, page = make(text)
        assert status == 0, messages
        return re.sub(r"<[^>]+>", "", page.partition("<article")[2])

    return made


def test_a_claim_shows_the_last_change_of_its_rule(build):
    page = build("```{claims}\n```", C1=[FIRST, SECOND, THIRD], C3=[FIRST])
    assert "Last changed: 2026-01-05, after its runs were stored." in page
    assert "Changed on" not in page  # earlier entries are in the record
    assert "Fixed: 2026-01-01, before its runs were stored." in page
