"""Former rules beside the claims, and the list of verdicts that changed, in small builds."""

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


def test_a_claim_shows_its_former_rules_with_their_verdicts_and_the_reasons(build):
    page = build("```{claims}\n```", C1=[FIRST, SECOND, THIRD], C3=[FIRST])
    assert page.count("The rule was changed on 2026-01-05") == 1
    told = [
        "Changed on 2026-01-05: wider intervals",
        "Verdict under it: partly (1 of 2)",
        "Changed on 2026-01-03: half of",
        "Former rule (2026-01-01, before its runs were stored): gap below 2.",
        "Verdict under it: reproduced",
    ]
    places = [page.index(text) for text in told]
    assert places == sorted(places)
    assert page.count("Former rule") == 1  # the second change was of the verdict alone
    assert "Fixed: 2026-01-05, after its runs were stored." in page
    assert "Fixed: 2026-01-01, before its runs were stored." in page


def test_every_verdict_that_changed_is_listed_with_old_new_and_why(build):
    gone = Entry("2026-01-04", "earlier", "", "", "withdrawn", "", "not the paper's")
    page = build(
        "```{claims}\n```\n\n```{changed-verdicts} 2026-01-02\n```",
        C1=[FIRST, SECOND, THIRD],
        C2=[FIRST],
        C3=[SECOND],
        C4=[FIRST, gone],
        C5=[FIRST, Entry("2026-01-04", "earlier", "c", "x", "reproduced", "", "other words")],
    )
    page = page[page.index("before") :].replace("\n", " ")
    assert "3 verdicts changed. Of the other 2 claims 1 have another rule" in page
    rows = page.split("Why")[1]
    assert re.search(r"toy/C1\s+reproduced\s+undecided\s+Half of .*Wider intervals\.", rows)
    assert re.search(r"toy/C3\s+none\s+partly \(1 of 2\)", rows)
    assert re.search(r"toy/C4\s+reproduced\s+withdrawn\s+Not the paper.s\.", rows)
    assert not re.search("toy/C[25]", rows)
