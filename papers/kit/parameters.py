"""Parameters of pages: what they may be, and what a reader asks for.

A value comes from a cell that somebody has edited, from papermill, YAML or a command line. All of
them are read in one way: a text that stands for a number, a list, true, false or none is that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
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
    meanings = {}
    quick = {}
    full = {}
    for name, entry in declared.items():
        meanings[name] = entry[0]
        quick[name] = entry[-1]
        full[name] = entry[1]
    return {"parameters": meanings, "profiles": {"quick": quick, "full": full}}


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
        full, quick, least = of_profiles(declaration)
        given = values.get(name)
        value = checked("page", name, given, [full, quick])
        if value is None:
            value = quick if profile == "quick" else full
        check_least(name, value, full, least)
        cell[name] = value


def of_profiles(declaration: Any) -> tuple[Any, Any, Any]:
    """The full and the quick profile's value and the least one, of a declaration of `settle`."""
    if not isinstance(declaration, tuple):
        declaration = (declaration,)
    entries = []
    for entry in declaration:
        is_list = isinstance(entry, list)
        entries.append(tuple(entry) if is_list else entry)
    full = entries[0]
    quick = entries[1] if len(entries) > 1 else full
    least = entries[2] if len(entries) > 2 else 1
    return full, quick, least


def check_least(name: str, value: Any, full: Any, least: int) -> None:
    """Refuse what a page cannot compute with; 0 only where it is the full profile's."""
    if isinstance(full, tuple):
        enough = len({*value}) >= least
        rule = f"have at least {least} values"
        checks.require(enough, "page", name, rule, value)
    elif isinstance(full, int) and full > 0:
        checks.count("page", name, value, least)
    elif isinstance(full, float) and full > 0:
        checks.positive("page", name, value)


def requested(caller: str, cell: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The values of a page's parameters among its names; ValueError for one that is not known."""
    for name in assigned(cell, known):
        if name not in known:
            rule = f"parameters must be among its own, got {name!r}"
            hint = nearest(name, known)
            raise ValueError(f"{caller}: {rule}; {hint}.")
    return {name: cell[name] for name in known if name in cell}


def assigned(cell: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    """Names of constants that somebody may have meant as parameters.

    In a notebook those of the cell of parameters as it was run last, and of a cell that papermill
    has added; where it keeps no history, those that differ from a parameter by capitals alone.
    In a program all, but of names in capitals only those that differ from a parameter by that.
    """
    if "In" in cell:
        names = cell_of_parameters(cell["In"])
        if names:
            return [name for name in names if is_constant(cell.get(name))]
        others = [name for name in cell if name not in known]
        return [name for name in others if name.lower() in known]
    meant = []
    for name, value in cell.items():
        private = name.startswith("_")
        named_as_constant = name.isupper() and name.lower() not in known
        if is_constant(value) and not private and not named_as_constant:
            meant.append(name)
    return meant


def is_constant(value: object) -> bool:
    """Whether a parameter may have such a value."""
    return isinstance(value, CONSTANTS)


def cell_of_parameters(history: object) -> list[str]:
    """The names that the last cell of parameters sets, and those of a cell added to it.

    Of the sources that a kernel has run; none where nothing is such a history.
    """
    names: list[str] = []
    if not isinstance(history, list):
        return names
    for source in history:
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
    names = []
    for statement in statements:
        if not isinstance(statement, ast.Assign):
            continue
        plain = [target for target in statement.targets if isinstance(target, ast.Name)]
        names += [target.id for target in plain]
    return names


def nearest(name: str, options: Iterable[str]) -> str:
    """Some of the known names, those that look like `name` first."""
    names = list(options)
    close = get_close_matches(name, names, cutoff=0.5)
    if not close:
        close = get_close_matches(name.lower(), names, cutoff=0.5)
    if close:
        return f"nearest: {', '.join(close)}"
    label = "known" if len(names) <= 6 else "some that are there"
    return f"{label}: {', '.join(names[:6])}"


def read(text: str) -> Any:
    """What a text stands for: true, false, none, a number or a list; else the text itself.

    >>> read("1e-1"), read("(0.1,1)"), read("True"), read("digits")
    (0.1, [0.1, 1], True, 'digits')
    """
    stripped = text.strip()
    word = stripped.lower()
    if word in WORDS:
        return WORDS[word]
    try:
        value = ast.literal_eval(stripped)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, (int, float, str, list)):
        return value
    return text


def checked(caller: str, name: str, value: Any, examples: Sequence[Any]) -> Any:
    """A parameter as a page takes it; ValueError or TypeError unless it fits the profiles'.

    Lists become tuples, and numbers those of Python, of the kind of the `examples`; a count of
    seeds becomes the seeds from 0. Counts are positive; 0 is allowed where a profile has it. Texts
    are those of some profile. None stays None: the profile's.
    """
    if not isinstance(examples[0], tuple):
        value = read_as(value, examples)
        if value is None:
            return None
        return check_one(caller, name, value, examples)
    if isinstance(value, str):
        value = entries_of(value)
    if value is None:
        return None
    is_count = isinstance(value, int) and not isinstance(value, bool)
    if name == "seeds" and is_count:
        check_count(caller, name, value, 1, MOST_SEEDS)
        return tuple(range(value))
    return check_list(caller, name, value, examples)


def check_count(caller: str, name: str, value: Any, least: int, most: int) -> None:
    """Refuse a count that is too small or too large."""
    checks.count(caller, name, value, least)
    checks.require(value <= most, caller, name, f"be at most {most}", value)


def check_list(caller: str, name: str, values: Any, examples: Sequence[Any]) -> tuple[Any, ...]:
    """The entries of a list, each of the kind of the examples' entries.

    They must be distinct, unless those of an example are not.
    """
    if not isinstance(values, (list, tuple, range)) or not values:
        example = list(examples[0][:3])
        rule = f"be a list such as {example}"
        raise ValueError(checks.sentence(caller, name, rule, values))
    entries = list(chain(*examples))
    entry_name = f"every entry of {name}"
    checked_values = []
    for value in values:
        entry = read_as(value, entries)
        checked_values.append(check_one(caller, entry_name, entry, entries))
    if name == "seeds":
        return check_seeds(checked_values)
    may_repeat = not all(are_distinct(example) for example in examples)
    allowed = may_repeat or are_distinct(checked_values)
    checks.require(allowed, caller, name, "have distinct entries", checked_values)
    return tuple(checked_values)


def are_distinct(values: Sequence[Any]) -> bool:
    """Whether no value is there twice."""
    return len({*values}) == len(values)


def pairs(
    caller: str, p: Mapping[str, Any], first_name: str, second_name: str
) -> list[tuple[Any, Any]]:
    """The entries of two lists of parameters, pair by pair; ValueError unless they are as long."""
    first = p[first_name]
    second = p[second_name]
    as_long = len(second) == len(first)
    rule = f"have an entry for each of {first_name} ({len(first)})"
    checks.require(as_long, caller, second_name, rule, second)
    return list(zip(first, second, strict=True))


def entries_of(text: str) -> Any:
    """A text as the list that it stands for; without quotes its entries are texts, too."""
    value = read(text)
    if not isinstance(value, str) or "," not in value:
        return value
    entries = value.strip("[]() ").split(",")
    return [entry.strip() for entry in entries]


def read_as(value: Any, examples: Sequence[Any]) -> Any:
    """A text as the number or truth that it stands for, unless a text is wanted."""
    if not isinstance(value, str) or value in examples:
        return value
    text_is_wanted = isinstance(examples[0], str)
    if text_is_wanted and value.lower() not in WORDS:
        return value
    return read(value)


def check_one(caller: str, name: str, value: Any, examples: Sequence[Any]) -> Any:
    """One number or text of the kind of the examples."""
    example = examples[0]
    if isinstance(example, str):
        texts = sorted({*examples})
        checks.one_of(caller, name, value, texts)
    elif isinstance(example, bool):
        checks.value(caller, name, value, bool)
    elif isinstance(example, int):
        least = 0 if 0 in examples else 1
        check_count(caller, name, value, least, MOST)
    else:
        checks.number(caller, name, value)
    return type(example)(value)
