"""The parameters of a notebook: what its cell declares, and what a command line may give."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from nbformat import NotebookNode
from stamping import NotebookError

Parameters = dict[str, object]
#: Where a study's notebook takes the parameters of the study that have no line of their own.
OTHERS = "others"


def unknown(who: str, what: str, name: str, known: Iterable[str]) -> str:
    """The sentence that refuses a name, with those that come nearest."""
    from papers.kit.commands import nearest

    return f"{who}: there is no {what} {name!r}; {nearest(name, known)}."


def declared_parameters(name: str, notebook: NotebookNode) -> dict[str, object]:
    """The literals of the ``parameters`` cell: name -> default."""
    (cell,) = (c for c in notebook.cells if "parameters" in c.metadata.get("tags", ()))
    declared = {}
    for statement in ast.parse(cell.source).body:
        if isinstance(statement, ast.Assign):
            (target,) = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            target = statement.target
        else:
            raise NotebookError(f"{name}: the parameters cell may hold assignments only.")
        declared[ast.unparse(target)] = ast.literal_eval(statement.value)  # type: ignore[arg-type]
    return declared


def profiles_of(name: str) -> dict[str, Parameters]:
    """The study's profiles with their values; a note has quick and full, without values."""
    from papers import STUDIES

    if name in STUDIES:
        return {profile: dict(values) for profile, values in STUDIES[name].profiles.items()}
    return {"quick": {}, "full": {}}


def parameters_of(name: str) -> tuple[str, ...]:
    """The parameters of the study of this name; a note has none but those of its cell."""
    from papers import STUDIES

    return tuple(STUDIES[name].parameters) if name in STUDIES else ()


def placed(name: str, notebook: NotebookNode, given: Parameters) -> Parameters:
    """What papermill writes: a parameter of the study without a line of its own among `others`."""
    declared = declared_parameters(name, notebook)
    others = {key: value for key, value in given.items() if key not in declared}
    own = {key: value for key, value in given.items() if key in declared}
    if others:
        own[OTHERS] = {**given.get(OTHERS, {}), **others}  # type: ignore[dict-item]
    return own


def check_parameters(name: str, notebook: NotebookNode, given: Parameters) -> None:
    """Refuses a name that neither cell nor study have, and a value of another kind."""
    declared, profiles = declared_parameters(name, notebook), profiles_of(name)
    known = {**dict.fromkeys(parameters_of(name) if OTHERS in declared else ()), **declared}
    if isinstance(given.get(OTHERS), dict):
        given = {**given, **given[OTHERS]}  # type: ignore[dict-item]
    for key, value in given.items():
        if key not in known:
            raise NotebookError(unknown(name, "parameter", key, known))
        if key == "profile" and value not in profiles:
            raise NotebookError(unknown(name, "profile", str(value), profiles))
        default = known[key]
        if default is None:  # None means the profile's own value, which then shows the kind
            default = profiles.get(str(given.get("profile", declared.get("profile"))), {}).get(key)
        if default is None and key in declared and not is_count(value):
            rule = "be a whole number, at least 1, or a list of whole numbers from 0 on"
            raise NotebookError(f"{name}: parameter {key!r} must {rule}, got {value!r}.")
        if not same_kind(value, default):
            many = isinstance(default, list | tuple | range)
            kind = "list" if many else type(default).__name__
            raise NotebookError(f"{name}: parameter {key!r} must be of kind {kind}, got {value!r}.")
    if "profile" in given:
        check_values(name, given)


def check_values(name: str, given: Parameters) -> None:
    """Refuses values that the study of this name does not take; those of notes say so in a cell."""
    from papers import STUDIES
    from papers.kit.commands import SENTENCE

    if name in STUDIES:
        study = STUDIES[name]
        changes = {k: v for k, v in given.items() if k in study.parameters}
        try:
            study.specs(study.resolve(str(given["profile"]), **changes))
        except (ValueError, TypeError) as error:
            if SENTENCE.fullmatch(str(error)) is None:
                raise
            raise NotebookError(str(error)) from None  # it names the parameter


def check_device(given: Parameters) -> None:
    """Refuses a device that is not on this machine."""
    from fedlib.run import resolve_device

    try:
        resolve_device(str(given.get("device") or "cpu"))
    except ValueError as error:
        raise NotebookError(str(error)) from None


def is_count(value: object) -> bool:
    """Whether a value may stand where a note has None: None, a count, or a list such as seeds."""
    if value is None:
        return True
    many = isinstance(value, list | tuple) and bool(value)
    every = [*value] if many else [value]  # type: ignore[misc]
    return all(isinstance(x, int) and not isinstance(x, bool) and x >= 1 - many for x in every)


def same_kind(value: object, default: object) -> bool:
    """Whether ``value`` may stand where ``default`` stands (a whole number also for a float)."""
    if value is None or default is None:
        return True
    if isinstance(default, list | tuple | range):
        return isinstance(value, list | tuple | int) and not isinstance(value, bool)
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int | float):
        return isinstance(value, int) or (isinstance(value, float) and isinstance(default, float))
    return isinstance(value, type(default))


def literal(text: str) -> object:
    """A value from the command line: true, false, none, a number, a list, else the text itself.

    `0,1` and `(0, 1)` are lists, too: papermill would write a tuple as a text.
    """
    words: dict[str, object] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the latter two: too deep
        return text
    return [*value] if isinstance(value, tuple) else value
