"""Every kind of syntax that our packages use, and some that parsers have read in different ways."""

import math as m
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

RATE: float = 2.5e-3
LARGE, SMALL = 2**70, -123456789012345678901234567890
NUMBERS = (1, 1.0, 1e300, 0.1, 1j, 0x1F, 1_000, True, None, ...)
TEXTS = ("plain", r"raw\d", b"bytes\x00", "im" "plicit", "é\u2028\U0001fae8", "\N{BULLET}\t")
TABLE = {"a": 1, **{"b": 2}, "c": [*range(3), 4]}
TABLE["d"] = RATE
TABLE |= {"e": {1, 2}}


class Pair(NamedTuple):
    """Two things."""

    left: float
    right: "int" = 0


@dataclass(frozen=True)
class Record:
    """A record."""

    known: ClassVar[int] = 3
    width: float
    start: InitVar[float | None] = None
    _: KW_ONLY
    parts: tuple[int, ...] = field(default_factory=tuple)

    def __post_init__(self, start: float | None) -> None:
        """Check it."""
        if self.width <= 0:
            wanted = "be positive"
            raise ValueError(f"Record: width must {wanted}, got {self.width:g}.")

    @property
    def area(self) -> float:
        """Width times width."""
        return self.width**2 * m.pi


def strings(x: float, width: int, name: str = "x") -> str:
    """F-strings, which parsers cut into pieces differently."""
    one = f"{x:>{width}.3f} of {{{name!r}}} " "and " f"{x=} {name=!s:>{width}}"
    two = f"{{}}{'a' if x else 'b'}{f'{width:{width}}'}" f"" f"{x:}{x:%H:{width}}\n"
    return one + two + rf"\d{x}" + f"no braces"


def functions(*rows: int, low: float = 0.0, high: float | None = None, **more: Any) -> list[Any]:
    """Arguments of all kinds, lambdas, comprehensions, scopes."""
    keep: Callable[[int], bool] = lambda row, /, least=low: row > least
    count: int
    count = sum(1 for row in rows if keep(row) if row)
    total = [(last := row) for row in rows] + [*map(partial(np.add, 1), rows)]
    grid = {(i, j): i @ j for i in rows for j in range(i) if 0 < i <= j != 3}
    unique = {x for x, *_ in grid}
    return [count, total[::2, ..., None], unique, last, more, (yield), (yield from rows)]


def control(value: Any, rows: list[Any]) -> Any:
    """Statements."""
    global RATE
    while rows and (row := rows.pop()) is not None:
        if not row:
            continue
        elif row in (1, 2):
            break
    else:
        RATE = ~1 if value else +1
    for i, [a, *b] in enumerate(rows, start=1):
        rows[i:, a] = b, *b
    try:
        if value:
            raise ValueError("caught")
        assert rows, "words"
    except (ValueError, KeyError) as error:
        del rows[0]
        raise TypeError("other") from error
    finally:
        value @= 2
    with open("a") as first, open("b"):
        pass
    return matched(value) if value else first


def matched(value: Any) -> Any:
    """Patterns."""
    match value:
        case {"a": [1, *rest], **others} if rest:
            return others
        case Record(width=w) | Pair(w, _):
            return w
        case None | -1 | "x" as found:
            return found
        case m.pi:
            return Record.known
        case _:
            return None


def outer(n: int) -> Any:
    """Functions in functions."""
    import os.path as where

    @partial(partial, n=n)
    def inner(RATE: int, n: int = n) -> int:
        nonlocal held
        held = RATE
        return n << 1 | held & 2 ^ 3 >> 1

    held = 0
    return inner, where.join("a", "b"), held // 2 % 3, not held or held - 1 and n / 2
