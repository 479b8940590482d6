"""In how many of the settings that a paper leaves open one of its sentences holds.

The settings are all combinations of the values of each open choice. In each of them the same
condition is read off runs on the same seeds: it holds, fails, or is open.
"""

from collections.abc import Iterable, Sequence

from papers.kit.numbers import Number
from papers.kit.quantities import Row, row
from papers.kit.rules import Control, Rule, State, of


def shares(claim: str, settings: Iterable[tuple[State, State]]) -> list[Row]:
    """The share of the settings in which a sentence holds, and in which its control does.

    Parameters
    ----------
    claim : short name of the claim, which the names of both rows begin with.
    settings : for every setting whether the sentence holds there, and whether its control does.
    """
    states, control_states = zip(*settings, strict=True)
    share = row(f"{claim}.share", share_of(states))
    control = row(f"{claim}.control", share_of(control_states))
    return [share, control]


def share_of(states: Sequence[State]) -> Number:
    """From the settings in which the sentence holds to those in which it does not fail."""
    low = states.count(True) / len(states)
    high = 1 - states.count(False) / len(states)
    return Number(low, low, high, (), "of the settings")


def rule(claim: str, control: str, note: str = "") -> Rule:
    """That a sentence holds in half of the settings, and in nine of ten."""
    share = of(f"{claim}.share")
    return Rule(
        {
            "the claim holds in at least half of the settings": share >= 0.5,
            "the claim holds in at least nine of ten settings": share >= 0.9,
        },
        note=note,
        control=Control(control, {f"{claim}.share": f"{claim}.control"}),
    )
