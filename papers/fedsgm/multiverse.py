"""In how many of the settings that a paper leaves open one of its sentences holds.

The settings are all combinations of the values of each open choice. In each of them the same
condition is read off runs on the same seeds: it holds, fails, or is open.
"""

from collections.abc import Iterable, Iterator, Sequence

from papers.kit.numbers import Number
from papers.kit.quantities import Label, Row, row
from papers.kit.rules import State


def shares(
    settings: Iterable[tuple[State, State]],
    measure: str,
    control: str,
    **labels: Label,
) -> Iterator[Row]:
    """The share of the settings in which a sentence holds, and in which its control does.

    Parameters
    ----------
    settings : for every setting whether the sentence holds there, and whether its control does.
    measure, control : what the two shares are called.
    labels : of both.
    """
    states, control_states = zip(*settings, strict=True)
    yield row(measure, share_of(states), **labels)
    yield row(control, share_of(control_states), **labels)


def share_of(states: Sequence[State]) -> Number:
    """From the settings in which the sentence holds to those in which it does not fail."""
    low = states.count(True) / len(states)
    high = 1 - states.count(False) / len(states)
    return Number(low, low, high, (), "of the settings")
