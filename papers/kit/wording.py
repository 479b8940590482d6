"""Words of rules: conditions of one form in one sentence, many names in one list."""

from __future__ import annotations

from collections.abc import Sequence

BELOW, AT_MOST, ABOVE, AT_LEAST = "below", "at most", "above", "at least"
#: What comparing something else than a value amounts to.
SEEDS = {
    ("largest", AT_MOST): "every seed's {} at most",
    ("smallest", AT_LEAST): "every seed's {} at least",
    ("largest", BELOW): "every seed's {} below",
    ("smallest", ABOVE): "every seed's {} above",
}
FEW = 3  # names, or conditions, that are told one by one


def compared(kind: str, form: str, how: str, bound: float) -> str:
    """A term of some kind and form beside a constant."""
    return f"{SEEDS.get((kind, how), f'{form} {how}')} {bound:.6g}"


def together(form: str, keys: Sequence[tuple[str, ...]]) -> str:
    """Conditions of one form: in one sentence where they are many or have one key each."""
    if form.count("{}") == 1 and len(keys[0]) > 1:
        return "; ".join(form.format(in_order(own)) for own in keys)
    columns = [*zip(*keys, strict=True)]
    single = len(columns) == 1
    if single or (len(keys) > FEW and all(len({*c}) in (1, len(c)) for c in columns)):
        text = form.format(*(listed([*dict.fromkeys(c)]) for c in columns))
        return text if single else f"{text}, each in turn"
    return "; ".join(form.format(*(f"`{key}`" for key in own)) for own in keys)


def in_order(keys: Sequence[str]) -> str:
    """Keys whose order counts; in short where all runs have the same measure."""
    same = len({key.rpartition(".")[2] for key in keys}) == 1
    return listed(keys) if same else ", ".join(f"`{key}`" for key in keys)


def listed(keys: Sequence[str]) -> str:
    """Keys of numbers; many in short, those of runs with the same measures together.

    >>> listed(["hard_B1.f", "hard_B1.g", "hard_B2.f", "hard_B2.g"])
    '`hard_{B1, B2}.{f, g}`'
    """
    if len(keys) <= FEW:
        return ", ".join(f"`{key}`" for key in keys)
    measures: dict[str, list[str]] = {}
    for key in keys:
        run, _, measure = key.rpartition(".")
        measures.setdefault(run, []).append(measure)
    runs: dict[tuple[str, ...], list[str]] = {}
    for run, own in measures.items():
        runs.setdefault(tuple(own), []).append(run)
    pairs = [(braced(names), braced(own)) for own, names in runs.items()]
    return ", ".join(f"`{names}.{own}`" if names else f"`{own}`" for names, own in pairs)


def braced(names: Sequence[str]) -> str:
    """Names in braces, what they begin or end with outside."""
    if len(names) == 1:
        return names[0]
    parts = [name.split("_") for name in names]
    own = min(map(len, parts)) - 1  # of every name, something stays inside
    start = end = 0
    while start < own and len({part[start] for part in parts}) == 1:
        start += 1
    while start + end < own and len({part[-1 - end] for part in parts}) == 1:
        end += 1
    inside = ", ".join("_".join(part[start : len(part) - end]) for part in parts)
    return "_".join([*parts[0][:start], f"{{{inside}}}", *parts[0][len(parts[0]) - end :]])
