"""The library stands alone: it runs without the papers, and imports what it needs when it does."""

import json


def test_the_library_runs_without_what_only_the_papers_need(other_process):
    report = json.loads((other_process / "report.json").read_text(encoding="utf-8"))
    assert report["shape"] == [1, 4]
