"""At which rounds a run is evaluated: at equal distances, or ever more seldom."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedlib.checks import Count

Every = Count | Literal["geometric"]
DENSE = 64  # rounds that are all evaluated, in a geometric schedule


@dataclass(frozen=True)
class Schedule:
    """The rounds before which a run is evaluated, round 0 among them.

    >>> list(Schedule(3).before(8))
    [0, 3, 6]
    >>> Schedule("geometric").before(300)[-8:]
    [248, 252, 256, 264, 272, 280, 288, 296]

    Parameters
    ----------
    every : rounds between two evaluations. `"geometric"`: 1 up to round 64, 2 from there to round
        128, 4 up to 256, and so on, so that a run twice as long has 32 evaluations more.
    """

    every: Every

    def gap(self, round_: int) -> int:
        """The distance of evaluations from a round on; never less in later rounds."""
        if isinstance(self.every, str):
            return 1 << (round_ // DENSE).bit_length()
        return self.every

    def due(self, round_: int) -> bool:
        """Whether there is an evaluation before a round."""
        return round_ % self.gap(round_) == 0

    def before(self, rounds: int) -> Sequence[int]:
        """The evaluated ones among so many rounds."""
        return [t for t in range(rounds) if self.due(t)]
