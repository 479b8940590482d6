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

#: Sizes that single precision keeps with all its digits.
SMALLEST = 1e-37
LARGEST = 3e38

EXACT = 22  # 10 to this power, and no higher one, is a number of double precision


def six_digits(values: Array) -> Array:
    """Numbers of double precision with six significant digits.

    Of numbers that were rounded to six digits and then to single precision these are the former,
    to the last bit.
    """
    double = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        magnitude = np.floor(np.log10(np.abs(double)))
        power = DIGITS - 1 - magnitude
        distance = np.abs(power)
        scale = 10.0**distance
        large = np.rint(double / scale) * scale
        small = np.rint(double * scale) / scale
        rounded: Array = np.where(power < 0, large, small)
    inexact = ~(distance <= EXACT)  # NaN, too
    rounded[inexact] = double[inexact]
    has_digits = np.isfinite(double) & (double != 0)
    for index in zip(*np.nonzero(inexact & has_digits), strict=True):
        value = float(double[index])
        rounded[index] = significant(value)
    return rounded


def compact(values: Array) -> Array:
    """Numbers of six digits in single precision, or as they are where that would lose digits."""
    sizes = np.abs(values)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    too_small = sizes < SMALLEST
    too_large = sizes > LARGEST
    if np.any(too_small | too_large):
        return values
    return values.astype(np.float32)


def exact(values: Array) -> Array:
    """The numbers that `compact` was given."""
    if values.dtype == np.float32:
        return six_digits(values)
    return values


def fingerprint(arrays: Mapping[str, Array]) -> str:
    """The SHA-256 digest of named arrays, which does not depend on how they are stored."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = np.asarray(arrays[name], dtype="<f8")
        heading = f"{name} {values.shape}"
        one_kind_of_nan = np.where(np.isnan(values), np.nan, values)
        digest.update(heading.encode())
        digest.update(one_kind_of_nan.tobytes())
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
    has_metrics = np.isin(rounds, evaluated)
    has_info = rounds < last_round
    seed_numbers = np.asarray(seeds, dtype=np.int64)
    round_numbers = rounds.astype(np.int32)
    columns: dict[str, Array] = {
        "seed": np.repeat(seed_numbers, len(rounds)),
        "round": np.tile(round_numbers, len(seeds)),
    }
    for name, values in metrics.items():
        columns[name] = _spread(values, has_metrics)
    for name, values in info.items():
        column = info_column(name, metrics)
        columns[column] = _spread(values, has_info)
    return columns


def _spread(values: Array, has_entry: Array) -> Array:
    """A curve at all rounds of a table, seed after seed, of which some have an entry."""
    shape = (len(values), len(has_entry))
    spread = np.full(shape, np.nan)
    spread[:, has_entry] = values
    return spread.ravel()


def info_column(name: str, metrics: Iterable[str]) -> str:
    """The column of what a method says of its rounds; apart from a metric of the same name."""
    if name in metrics:
        return f"{name}_of_round"
    return name


def curves_at(
    rows: pd.DataFrame, evaluated: Sequence[int], metrics: Sequence[str], info: Sequence[str]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The metrics and infos of a run again, from its rows of a table; see `rows_of`."""
    count = rows["seed"].nunique()
    rounds = rows["round"].to_numpy()
    has_metrics = np.isin(rounds, evaluated)
    has_info = rounds < evaluated[-1]

    def curve(column: str, has_entry: Array) -> Array:
        entries = rows[column].to_numpy()[has_entry]
        by_seed = entries.reshape(count, -1)
        return exact(by_seed)

    metric_curves = {}
    for name in metrics:
        metric_curves[name] = curve(name, has_metrics)
    info_curves = {}
    for name in info:
        column = info_column(name, metrics)
        info_curves[name] = curve(column, has_info)
    return metric_curves, info_curves


def write(path_or_file: Any, runs: Sequence[Mapping[str, Any]]) -> None:
    """Write a table as a Parquet file that any reader of the format opens.

    Parameters
    ----------
    path_or_file : where to.
    runs : for each run its `profile`, `run`, `labels` and `rows` (see `rows_of`).
    """
    frames = []
    labels: dict[str, Any] = {}
    for run in runs:
        labels_of_run = _floats(run["labels"])
        labels |= labels_of_run
        columns = {
            "profile": run["profile"],
            "run": run["run"],
            **labels_of_run,
            **run["rows"],
        }
        frames.append(pd.DataFrame(columns))
    table = pd.concat(frames, ignore_index=True)
    index = ["profile", "run", *labels, "seed", "round"]
    curves = list(table.columns.drop(index))
    for column in index:
        kind = pd.api.types.infer_dtype(table[column], skipna=True)
        if kind == "string":
            words = table[column].dropna().unique()
            table[column] = pd.Categorical(table[column], categories=words)
    for column in curves:
        values = table[column].to_numpy()
        table[column] = compact(values)
    in_order = table[[*index, *curves]]
    in_order.to_parquet(
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
    with_floats = {}
    for label, value in labels.items():
        is_whole = type(value) is int
        with_floats[label] = float(value) if is_whole else value
    return with_floats


def read(path: Any) -> dict[tuple[str, str], pd.DataFrame]:
    """The rows of each run in a Parquet file, by profile and name; curves as they are stored."""
    table = pd.read_parquet(path, page_checksum_verification=True)
    runs = table.groupby(["profile", "run"], sort=False, observed=True)
    return dict(iter(runs))
