"""Parameters of pages: what they may be, and what a reader asks for.

A value comes from a cell that somebody has edited, from papermill, YAML or a command line. All of
them are read in one way: a text that stands for a number, a list, true, false or none is that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from fedlib import checks
from fedlib.run import check_seeds

MOST = 10**9  # a larger count is a slip of the keyboard: nobody waits for its end
MOST_SEEDS = 10**5
WORDS = {"true": True, "false": False, "none": None, "null": None}
CONSTANTS = (bool, int, float, str, list, tuple, dict)
INJECTED = "# Parameters"  # the first line of the cell that papermill adds


def parameters(**declared: tuple[Any, ...]) -> dict[str, Any]:
    """The parameters of a study, each as (meaning, full profile's value[, quick profile's]).

    >>> parameters(rounds=("rounds T", 100, 5), lr=("step size", 0.1))["profiles"]["quick"]
    {'rounds': 5, 'lr': 0.1}
    """
    return {
        "parameters": {name: entry[0] for name, entry in declared.items()},
        "profiles": {
            "quick": {name: entry[-1] for name, entry in declared.items()},
            "full": {name: entry[1] for name, entry in declared.items()},
        },
    }


def settle(cell: dict[str, Any], /, **declared: Any) -> None:
    """Check the parameters of a note or a tutorial; put the profile's where the cell says None.

    >>> cell = {"profile": "quick", "rounds": None, "seed": "3"}
    >>> settle(cell, seed=0, rounds=(100, 40))
    >>> cell
    {'profile': 'quick', 'rounds': 40, 'seed': 3}

    Parameters
    ----------
    cell : the page's names, `globals()`; the parameters in it are changed.
    declared : name -> its value in both profiles, or (full, quick), or (full, quick, least), where
        a count below the least, or a list of fewer entries, is refused. A list is a list's value.

    Raises
    ------
    ValueError, TypeError
        for a name that is not declared, and for a value of another kind than the profiles'.
    """
    values = requested("page", cell, ("profile", *declared))
    profile = values.get("profile", "full")
    checks.one_of("page", "profile", profile, ("full", "quick"))
    cell["profile"] = profile
    for name, declaration in declared.items():
        entries = declaration if isinstance(declaration, tuple) else (declaration,)
        full, *others = [tuple(entry) if isinstance(entry, list) else entry for entry in entries]
        quick = others[0] if others else full
        least: Any = others[1] if len(others) > 1 else 1
        value = checked("page", name, values.get(name), [full, quick])
        if value is None:
            value = quick if profile == "quick" else full
        check_least(name, value, full, least)
        cell[name] = value


def check_least(name: str, value: Any, full: Any, least: int) -> None:
    """Refuse what a page cannot compute with; 0 only where it is the full profile's."""
    if isinstance(full, tuple):
        enough = len({*value}) >= least
        checks.require(
            enough,
            "page",
            name,
            f"have at least {least} values",
            value,
        )
    elif isinstance(full, int) and full > 0:
        checks.count("page", name, value, least)
    elif isinstance(full, float) and full > 0:
        checks.positive("page", name, value)


def requested(caller: str, cell: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The values of a page's parameters among its names; ValueError for one that is not known."""
    for name in assigned(cell, known):
        if name not in known:
            rule = f"parameters must be among its own, got {name!r}"
            raise ValueError(f"{caller}: {rule}; {nearest(name, known)}.")
    return {name: cell[name] for name in known if name in cell}


def assigned(cell: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    """Names of constants that somebody may have meant as parameters.

    In a notebook those of the cell of parameters as it was run last, and of a cell that papermill
    has added; where it keeps no history, those that differ from a parameter by capitals alone.
    In a program all, but of names in capitals only those that differ from a parameter by that.
    """
    if "In" in cell:
        names = cell_of_parameters(cell["In"])
        if not names:
            return [name for name in cell if name not in known and name.lower() in known]
        return [name for name in names if isinstance(cell.get(name), CONSTANTS)]
    constants = [name for name, value in cell.items() if isinstance(value, CONSTANTS)]
    public = [name for name in constants if name[0] != "_"]
    return [name for name in public if not name.isupper() or name.lower() in known]


def cell_of_parameters(history: object) -> list[str]:
    """The names that the last cell of parameters sets, and those of a cell added to it.

    Of the sources that a kernel has run; none where nothing is such a history.
    """
    names: list[str] = []
    for source in history if isinstance(history, list) else ():
        set_here = targets(source)
        if source.startswith(INJECTED):
            names += set_here
        elif "profile" in set_here:
            names = set_here
    return names


def targets(source: str) -> list[str]:
    """The names that the statements of a cell set; none where it has a command of IPython."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return []
    assignments = [s for s in statements if isinstance(s, ast.Assign)]
    return [t.id for s in assignments for t in s.targets if isinstance(t, ast.Name)]


def nearest(name: str, options: Iterable[str]) -> str:
    """Some of the known names, those that look like `name` first."""
    names = list(options)
    close = get_close_matches(name, names, cutoff=0.5)
    close = close or get_close_matches(name.lower(), names, cutoff=0.5)
    label = "nearest" if close else "known" if len(names) <= 6 else "some that are there"
    return f"{label}: {', '.join(close or names[:6])}"


def read(text: str) -> Any:
    """What a text stands for: true, false, none, a number or a list; else the text itself.

    >>> read("1e-1"), read("(0.1,1)"), read("True"), read("digits")
    (0.1, [0.1, 1], True, 'digits')
    """
    if text.strip().lower() in WORDS:
        return WORDS[text.strip().lower()]
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    if isinstance(value, tuple):
        return [*value]
    return value if isinstance(value, (int, float, str, list)) else text


def checked(caller: str, name: str, value: Any, examples: Sequence[Any]) -> Any:
    """A parameter as a page takes it; ValueError or TypeError unless it fits the profiles'.

    Lists become tuples, and numbers those of Python, of the kind of the `examples`; a count of
    seeds becomes the seeds from 0. Counts are positive; 0 is allowed where a profile has it. Texts
    are those of some profile. None stays None: the profile's.
    """
    if not isinstance(examples[0], tuple):
        value = read_as(value, examples)
        return None if value is None else check_one(caller, name, value, examples)
    if isinstance(value, str):
        value = entries_of(value)
    if value is None:
        return None
    if name == "seeds" and isinstance(value, int) and not isinstance(value, bool):
        checks.count(caller, name, value)
        checks.require(
            value <= MOST_SEEDS,
            caller,
            name,
            f"be at most {MOST_SEEDS}",
            value,
        )
        return tuple(range(value))
    return check_list(caller, name, value, examples)


def check_list(caller: str, name: str, values: Any, examples: Sequence[Any]) -> tuple[Any, ...]:
    """The entries of a list, each of the kind of the examples' entries.

    They must be distinct, unless those of an example are not.
    """
    if not isinstance(values, (list, tuple, range)) or not values:
        example = list(examples[0][:3])
        raise ValueError(checks.sentence(caller, name, f"be a list such as {example}", values))
    entries = [entry for example in examples for entry in example]
    entry_name = f"every entry of {name}"
    numbers = [check_one(caller, entry_name, read_as(value, entries), entries) for value in values]
    if name == "seeds":
        return check_seeds(numbers)
    repeated = any(len({*example}) < len(example) for example in examples)
    distinct = repeated or len({*numbers}) == len(numbers)
    checks.require(
        distinct,
        caller,
        name,
        "have distinct entries",
        numbers,
    )
    return tuple(numbers)


def pairs(
    caller: str, p: Mapping[str, Any], first_name: str, second_name: str
) -> list[tuple[Any, Any]]:
    """The entries of two lists of parameters, pair by pair; ValueError unless they are as long."""
    count = len(p[first_name])
    rule = f"have an entry for each of {first_name} ({count})"
    checks.require(
        len(p[second_name]) == count,
        caller,
        second_name,
        rule,
        p[second_name],
    )
    return list(zip(p[first_name], p[second_name], strict=True))


def entries_of(text: str) -> Any:
    """A text as the list that it stands for; without quotes its entries are texts, too."""
    value = read(text)
    if not isinstance(value, str) or "," not in value:
        return value
    return [entry.strip() for entry in value.strip("[]() ").split(",")]


def read_as(value: Any, examples: Sequence[Any]) -> Any:
    """A text as the number or truth that it stands for, unless a text is wanted."""
    is_text = isinstance(examples[0], str) and str(value).lower() not in WORDS
    is_text |= value in examples
    return read(value) if isinstance(value, str) and not is_text else value


def check_one(caller: str, name: str, value: Any, examples: Sequence[Any]) -> Any:
    """One number or text of the kind of the examples."""
    example = examples[0]
    if isinstance(example, str):
        checks.one_of(caller, name, value, sorted({*examples}))
    elif isinstance(example, bool):
        checks.value(caller, name, value, bool)
    elif isinstance(example, int):
        checks.count(caller, name, value, int(0 not in examples))
        checks.require(
            value <= MOST,
            caller,
            name,
            f"be at most {MOST}",
            value,
        )
    else:
        checks.number(caller, name, value)
    return type(example)(value)
