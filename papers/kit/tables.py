"""Curves of runs as one long table: a row for a run, seed and round, a column for a curve.

Curves have six significant digits. In single precision, where their size allows it, a digit is
never lost: `six_digits` gives the decimal number back that was stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from papers.kit.numbers import DIGITS, significant

Array = NDArray[Any]
#: Curves of a run: name -> `[S, R]`, an entry for each evaluated round (metrics) or each round.
Curves = Mapping[str, Array]

SINGLE = 1e-37, 3e38  # sizes that single precision keeps with all its digits
EXACT = 22  # 10 to this power, and no higher one, is a number of double precision


def six_digits(values: Array) -> Array:
    """Numbers of double precision with six significant digits.

    Of numbers that were rounded to six digits and then to single precision these are the former,
    to the last bit.
    """
    double = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        power = DIGITS - 1 - np.floor(np.log10(np.abs(double)))
        scale = 10.0 ** np.abs(power)
        rounded: Array = np.where(
            power < 0, np.rint(double / scale) * scale, np.rint(double * scale) / scale
        )
    inexact = ~(np.abs(power) <= EXACT)
    rounded[inexact] = double[inexact]
    for index in np.argwhere(inexact & np.isfinite(double) & (double != 0)):
        rounded[tuple(index)] = significant(float(double[tuple(index)]))
    return rounded


def compact(values: Array) -> Array:
    """Numbers of six digits in single precision, or as they are where that would lose digits."""
    size = np.abs(values[np.isfinite(values)])
    size = size[size > 0]
    if size.size and (size.min() < SINGLE[0] or size.max() > SINGLE[1]):
        return values
    return values.astype(np.float32)


def exact(values: Array) -> Array:
    """The numbers that `compact` was given."""
    return six_digits(values) if values.dtype == np.float32 else values


def fingerprint(arrays: Mapping[str, Array]) -> str:
    """The SHA-256 digest of named arrays, which does not depend on how they are stored."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = np.asarray(arrays[name], dtype="<f8")
        digest.update(f"{name} {values.shape}".encode())
        digest.update(np.where(np.isnan(values), np.nan, values).tobytes())
    return digest.hexdigest()


def rows_of(
    seeds: Sequence[int], evaluated: Sequence[int] | Array, metrics: Curves, info: Curves
) -> dict[str, Array]:
    """The rows of a run by column: seed, round, and its curves; NaN where a curve has no entry.

    Parameters
    ----------
    seeds : the seeds `[S]`.
    evaluated : the rounds in which metrics were evaluated; the last is the number of rounds.
    metrics, info : the curves; `info` has an entry for each round but the last.
    """
    rounds = np.asarray(evaluated)
    last_round = rounds[-1]
    if info:
        rounds = np.union1d(rounds, np.arange(last_round))
    columns: dict[str, Array] = {
        "seed": np.repeat(np.asarray(seeds, dtype=np.int64), len(rounds)),
        "round": np.tile(rounds.astype(np.int32), len(seeds)),
    }
    for name, values in metrics.items():
        columns[name] = _spread(values, np.isin(rounds, evaluated))
    for name, values in info.items():
        columns[info_column(name, metrics)] = _spread(values, rounds < last_round)
    return columns


def _spread(values: Array, has_entry: Array) -> Array:
    """A curve at all rounds of a table, seed after seed, of which some have an entry."""
    spread = np.full((len(values), len(has_entry)), np.nan)
    spread[:, has_entry] = values
    return spread.ravel()


def info_column(name: str, metrics: Iterable[str]) -> str:
    """The column of what a method says of its rounds; apart from a metric of the same name."""
    return f"{name}_of_round" if name in metrics else name


def curves_at(
    rows: pd.DataFrame, evaluated: Sequence[int], metrics: Sequence[str], info: Sequence[str]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The metrics and infos of a run again, from its rows of a table; see `rows_of`."""
    count = rows["seed"].nunique()
    rounds = rows["round"].to_numpy()
    has_metrics = np.isin(rounds, evaluated)
    has_info = rounds < evaluated[-1]

    def curve(column: str, has_entry: Array) -> Array:
        return exact(rows[column].to_numpy()[has_entry].reshape(count, -1))

    return (
        {name: curve(name, has_metrics) for name in metrics},
        {name: curve(info_column(name, metrics), has_info) for name in info},
    )


def write(path_or_file: Any, runs: Sequence[Mapping[str, Any]]) -> None:
    """Write a table as a Parquet file that any reader of the format opens.

    Parameters
    ----------
    path_or_file : where to.
    runs : for each run its `profile`, `run`, `labels` and `rows` (see `rows_of`).
    """
    frames = []
    for run in runs:
        names = {"profile": run["profile"], "run": run["run"]}
        frames.append(pd.DataFrame({**names, **_floats(run["labels"]), **run["rows"]}))
    table = pd.concat(frames, ignore_index=True)
    labels = dict.fromkeys(label for run in runs for label in run["labels"])
    index = ["profile", "run", *labels, "seed", "round"]
    curves = [*table.columns.drop(index)]
    for column in index:
        if pd.api.types.infer_dtype(table[column], skipna=True) == "string":
            words = table[column].dropna().unique()
            table[column] = pd.Categorical(table[column], categories=words)
    for column in curves:
        table[column] = compact(table[column].to_numpy())
    table[[*index, *curves]].to_parquet(
        path_or_file,
        index=False,
        compression="zstd",
        compression_level=9,
        use_dictionary=index,
        use_byte_stream_split=curves,
        write_page_checksum=True,
    )


def _floats(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Labels with floats in the places of whole numbers."""
    return {label: float(value) if type(value) is int else value for label, value in labels.items()}


def read(path: Any) -> dict[tuple[str, str], pd.DataFrame]:
    """The rows of each run in a Parquet file, by profile and name; curves as they are stored."""
    table = pd.read_parquet(path, page_checksum_verification=True)
    runs = table.groupby(["profile", "run"], sort=False, observed=True)
    return dict(iter(runs))
