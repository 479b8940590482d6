"""The campaign's page: its sentences about what is left and what the stored runs took."""

from pathlib import Path


def test_stored_runs_are_held_against_what_was_to_be_expected(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "book" / "_ext")
    from fedbook_campaign import kept

    said = kept([(1800.0, 3600.0), (3600.0, 3600.0), (1800.0, 600.0)])
    assert said == (
        "The 3 runs stored so took 2 hours where the times of the shorter ones say 2.2: a single "
        "one 0.5 to 3 times as long, half of them at most 1 times."
    )
    assert kept([]) == ""
