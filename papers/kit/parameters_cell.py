"""The cell of parameters at the top of a study's page, written from the study's parameters."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from papers.kit.store import PAPER
from papers.kit.study import Study

#: What every page has beside its study's parameters. A page may say more of its profiles or device.
BEFORE = {"profile": 'profile = "full"  # "full" or "quick"'}
AFTER = {
    "device": 'device = "auto"  # "auto", "cpu" or "cuda"',
    "recompute": "recompute = False  # compute even what is stored",
}


def renewed(source: str, study: Study) -> str:
    """The source of a cell of parameters with those of a study, as the study has them.

    A parameter's line has its meaning, and its value in each profile if they differ. The lines of
    `profile`, `device` and `recompute` stay as they are in the cell, or are added.
    """
    written = lines_by_name(source)
    lines = [written.get(name, line) for name, line in BEFORE.items()]
    lines += [parameter_line(name, meaning, study) for name, meaning in study.parameters.items()]
    lines += [written.get(name, line) for name, line in AFTER.items()]
    return "\n".join(lines)


def lines_by_name(source: str) -> dict[str, str]:
    """The line of a source on which each name is set."""
    lines = source.splitlines()
    assignments = [s for s in ast.parse(source).body if isinstance(s, ast.Assign)]
    return {ast.unparse(s.targets[0]): lines[s.lineno - 1] for s in assignments}


def parameter_line(name: str, meaning: str, study: Study) -> str:
    """The line of one parameter: its value, or None where the profiles have different ones."""
    profiles = (*study.profiles, PAPER) if study.at_paper else (*study.profiles,)
    values = {profile: study.resolve(profile)[name] for profile in profiles}
    if len(set(values.values())) == 1:
        return f"{name} = {literal(values['full'])}  # {meaning}"
    return f"{name} = None  # {meaning}: {profiles_in_words(values)}"


def profiles_in_words(values: Mapping[str, Any]) -> str:
    """A parameter's values by profile; the paper's only where it is not the full profile's.

    >>> profiles_in_words({"full": (0, 1, 2, 3), "quick": (0,), "paper": (0, 1, 2, 3)})
    'full 0 to 3; quick 0'
    """
    full = in_words(values["full"])
    quick = in_words(values["quick"])
    words = [f"full and quick {full}"] if full == quick else [f"full {full}", f"quick {quick}"]
    paper = values.get(PAPER, values["full"])
    if paper != values["full"]:
        words.append(f"{PAPER} {in_words(paper)}")
    return "; ".join(words)


def in_words(value: Any) -> str:
    """A value as a comment says it; four or more consecutive whole numbers by their ends."""
    if isinstance(value, float):
        return f"{value:g}"
    if not isinstance(value, tuple):
        return str(value)
    whole_numbers = all(isinstance(entry, int) for entry in value)
    if whole_numbers and len(value) >= 4 and value == (*range(value[0], value[0] + len(value)),):
        return f"{value[0]} to {value[-1]}"
    return ", ".join(in_words(entry) for entry in value)


def literal(value: Any) -> str:
    """A value as Python code; a tuple as a list, which a reader may change."""
    if isinstance(value, tuple):
        return f"[{', '.join(literal(entry) for entry in value)}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)
