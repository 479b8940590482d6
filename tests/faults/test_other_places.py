"""One of the places of other_places.py, the farthest from here; the script tries all."""

from other_places import PLACES, answer, probed


def test_nothing_depends_on_the_locale(tmp_path):
    (place,) = (place for place in PLACES if place.name == "ASCII everywhere")
    found = answer(*probed(place, tmp_path))
    assert found["stored"] > 10
    assert found["claims"]
    assert found["shown"] == 0


def test_there_are_places_enough_and_their_names_differ():
    assert len({place.name for place in PLACES}) == len(PLACES) >= 24
