"""The campaign's page: where stored runs fall short of their paper, and what that costs to mend."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Any

from docutils import nodes
from fedbook_data import BookDirective, Cell, page_link, table
from sphinx.application import Sphinx

if TYPE_CHECKING:
    from papers.kit.shortfall import Short

HEAD = ("Study", "Runs", "Stored now", "The paper", "Stored so", "Core-hours", "Claims")
WIDTHS = (15, 22, 16, 16, 8, 9, 20)
NONE = "–"
HOUR = 3600
TEN = 10  # hours, from which on no digit after the point is shown


class Campaign(BookDirective):
    """``{campaign}``: a sentence, and a line for all groups of a study that lack the same."""

    kind = "campaign"

    def build(self) -> list[nodes.Node]:
        """The page is built again when any code of a study, or any of its numbers, is another."""
        from fedlib.core.provenance import ROOT
        from papers import STUDIES
        from papers.kit import store
        from papers.kit.shortfall import shortfall, times_of

        for path in (ROOT / "papers").rglob("*.py"):
            self.env.note_dependency(str(path))
        for study in STUDIES.values():
            for profile in ("full", store.PAPER):
                for path in store.run_path(study.name, profile, "any").parent.glob("*.json"):
                    self.env.note_dependency(str(path))
        found = [short for study in STUDIES.values() for short in shortfall(study)]
        alike: dict[str, list[Short]] = {}
        for short in found:
            alike.setdefault(repr((short.job.study, short.now, short.paper)), []).append(short)
        rows = [self.row(some) for some in alike.values()]
        times = [pair for study in STUDIES.values() for pair in times_of(study)]
        text = f"{summary(found)} {kept(times)}"
        return [nodes.paragraph(text, text), table(HEAD, rows, WIDTHS, "campaign")]

    def row(self, some: list[Short]) -> list[Cell]:
        """The cells of groups that lack the same."""
        from papers.kit.shortfall import ended

        names = [name for short in some for name in short.job.names]
        left = [short for short in some if not short.done]
        claims = sorted({claim for short in left for claim in short.waiting}, key=number)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return [
            page_link(self.env, some[0].job.study),
            f"{names[0]}{more}",
            said(some[0].now),
            said(some[0].paper),
            f"{sum(short.done for short in some)} of {len(some)}",
            hours(some) + (f" ({end})" if (end := ended(some)) else ""),
            ", ".join(claims) or NONE,
        ]


def hours(some: list[Short]) -> str:
    """What is left, and what those that are stored took."""
    left = sum(short.job.seconds for short in some if not short.done) / HOUR
    took = sum(short.seconds for short in some) / HOUR
    shown = f"{left:.0f}" if left >= TEN else f"{left:.2g}"
    return shown + (f" (took {took:.2g})" if took else "")


def said(facts: Mapping[str, Any]) -> str:
    """Rounds, seeds and rows first, then what else differs."""
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts.items()) or NONE


def number(claim: str) -> tuple[str, int]:
    """Claims in the order of their papers' lists."""
    paper, _, count = claim.partition("/C")
    return paper, int(count)


def summary(found: list[Short]) -> str:
    """What the table comes to."""
    left = [short for short in found if not short.done]
    runs = sum(len(short.job.names) for short in left)
    took = sum(short.job.seconds for short in left) / HOUR
    claims = set(chain.from_iterable(short.waiting for short in left))
    return (
        f"{runs} runs in {len(left)} groups fall short of the paper, and {len(claims)} claims wait "
        f"for them; to compute them takes about {took:.0f} core-hours. {len(found) - len(left)} "
        "groups are stored as the paper has them."
    )


def kept(times: list[tuple[float, float]]) -> str:
    """How the stored runs kept to what was to be expected; empty where there are none."""
    if not times:
        return ""
    took, expected = (sum(each) / HOUR for each in zip(*times, strict=True))
    ratios = sorted(one / other for one, other in times)
    return (
        f"The {len(times)} runs stored so took {took:.2g} hours where the times of the shorter "
        f"ones say {expected:.2g}: a single one {ratios[0]:.2g} to {ratios[-1]:.2g} times as long, "
        f"half of them at most {median(ratios):.2g} times."
    )


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("campaign", Campaign)
