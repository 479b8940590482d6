"""One living process computes a group: claims are kept, taken over from the dead, never shared."""

import json
import os
import platform
import time

import pytest

from papers.kit.tenure import ABANDONED, is_abandoned, take, tenure


@pytest.fixture
def claim(tmp_path):
    return tmp_path / "group.claim"


def forged(path, **changes):
    """A claim of this very process, with some entries of another."""
    assert take(path)
    held = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**held, **changes}), encoding="utf-8")


def ended_process():
    if not (process := os.fork()):
        os._exit(0)
    os.waitpid(process, 0)
    return process


def test_who_holds_a_claim_holds_it_alone_and_to_the_end(claim):
    with tenure(claim) as ours:
        assert ours
        with tenure(claim) as another:
            assert not another
        assert claim.exists(), "who did not get it must not remove it"
    assert not claim.exists()


def test_a_claim_says_who_holds_it(claim):
    take(claim)
    held = json.loads(claim.read_text(encoding="utf-8"))
    assert held["pid"] == os.getpid()
    assert held["host"] == platform.node()


def test_the_claim_of_a_process_that_has_ended_is_taken_over(claim):
    forged(claim, pid=ended_process())
    assert take(claim)
    assert json.loads(claim.read_text(encoding="utf-8"))["pid"] == os.getpid()


def test_a_number_that_another_process_has_got_since_is_no_holder(claim):
    forged(claim, started="1")
    assert is_abandoned(claim)


@pytest.mark.parametrize("text", ["", "[3]", '{"host": "elsewhere", "pid": 1}'])
def test_a_claim_from_elsewhere_stands_until_nobody_has_touched_it_for_long(claim, text):
    claim.write_text(text, encoding="utf-8")
    assert not take(claim)
    before = time.time() - ABANDONED - 5
    os.utime(claim, (before, before))
    assert take(claim)


def test_of_many_that_take_over_at_once_one_succeeds(claim):
    forged(claim, pid=ended_process())
    answers, say = os.pipe()
    hold, release = os.pipe()
    children = []
    for _ in range(6):
        if not (child := os.fork()):
            os.close(release)
            os.write(say, bytes([take(claim)]))
            os.read(hold, 1)  # alive until all have tried
            os._exit(0)
        children.append(child)
    won = [ord(os.read(answers, 1)) for _ in children]
    os.close(release)
    for child in children:
        os.waitpid(child, 0)
    assert sum(won) == 1
