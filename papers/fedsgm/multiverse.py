"""In how many of the settings that a paper leaves open one of its sentences holds.

The settings are all combinations of the values of each open choice. In each of them the same
condition is read off runs on the same seeds: it holds, fails, or is undecided.
"""

from __future__ import annotations

from collections.abc import Sequence

from papers.kit.numbers import Number
from papers.kit.rules import Condition, Control, Numbers, Rule, State, of

Cell = tuple[State, float]


def cell(condition: Condition, **numbers: Number) -> Cell:
    """Whether a condition holds of some numbers, and the value of the one called `shown`."""
    return condition.holds(numbers), numbers["shown"].value


def shares(key: str, cells: Sequence[Cell], control: Sequence[Cell]) -> dict[str, Number]:
    """The share of the settings in which a sentence holds, in its control too, and every value."""
    values = Number(0.0, 0.0, 0.0, tuple(shown for _, shown in cells))
    return {
        f"{key}.share": _share(cells),
        f"{key}.control": _share(control),
        f"{key}.shown": values,
    }


def _share(cells: Sequence[Cell]) -> Number:
    """From the settings in which the sentence holds to those in which it does not fail."""
    states = [state for state, _ in cells]
    low = states.count(True) / len(states)
    return Number(low, low, 1 - states.count(False) / len(states), (), "of the settings")


def rule(
    key: str, settings: Sequence[str], shown: str, target: float, control: str, note: str = ""
) -> Rule:
    """That a sentence holds in half of the settings, and in nine of ten.

    `settings` are the words of the cells in their order, `shown` those of their value. A setting
    is the more favourable, the nearer its value is to `target`.
    """

    def measured(n: Numbers) -> str:
        share = n[f"{key}.share"]
        ranked = sorted(
            zip(n[f"{key}.shown"].per_seed, settings, strict=True),
            key=lambda pair: abs(pair[0] - target),
        )
        best, worst = (f"{value:.3g} at {words}" for value, words in (ranked[0], ranked[-1]))
        return (
            f"holds in {share.low:.0%} and fails in {1 - share.high:.0%} of {len(settings)} "
            f"settings; {shown}: most favourable {best}; least favourable {worst}"
        )

    return Rule(
        {
            "in half of the settings": of(f"{key}.share") >= 0.5,
            "in nine of ten": of(f"{key}.share") >= 0.9,
        },
        measured,
        f"The settings are all combinations of choices that the paper leaves open; in each, the "
        f"interval over seeds decides. {note}".strip(),
        control=Control(control, {f"{key}.share": f"{key}.control"}),
    )
