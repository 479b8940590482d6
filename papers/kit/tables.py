"""Curves of runs as one long table: a row for a run, seed and round, a column for a curve.

Curves have six significant digits. In single precision, where their size allows it, a digit is
never lost: `six_digits` gives the decimal number back that was stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.kit.numbers import DIGITS, significant

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

#: Columns of every table; those of labels follow them, then those of curves.
INDEX = ("profile", "run", "seed", "round")
SINGLE = 1e-37, 3e38  # sizes that single precision keeps with all its digits
EXACT = 22  # 10 to this power, and no higher one, is a number of double precision


class Curves(NamedTuple):
    """The curves of one run.

    Attributes
    ----------
    seeds : the seeds `[S]`.
    evaluated : the rounds `[R]` in which metrics were evaluated; the last is the number of rounds.
    metrics : name -> `[S, R]`.
    info : name -> `[S, T]`, an entry for each round from 0 to T - 1.
    """

    seeds: Sequence[int]
    evaluated: Sequence[int]
    metrics: Mapping[str, Array]
    info: Mapping[str, Array]

    @property
    def rounds(self) -> Array:
        """The rounds that have a row in the table."""
        if not self.info:
            return np.asarray(self.evaluated)
        return np.union1d(self.evaluated, np.arange(self.evaluated[-1]))


def six_digits(values: Array) -> Array:
    """Numbers of double precision with six significant digits.

    Of numbers that were rounded to six digits and then to single precision these are the former,
    to the last bit.
    """
    double = np.asarray(values, dtype=np.float64)
    rounded = double.copy()
    size = np.abs(double)
    regular = np.isfinite(double) & (size > 0)
    power = np.zeros(double.shape)
    power[regular] = DIGITS - 1 - np.floor(np.log10(size[regular]))
    shifted_left = regular & (power >= 0) & (power <= EXACT)
    scale = 10.0 ** power[shifted_left]
    rounded[shifted_left] = np.rint(double[shifted_left] * scale) / scale
    shifted_right = regular & (power < 0) & (power >= -EXACT)
    scale = 10.0 ** -power[shifted_right]
    rounded[shifted_right] = np.rint(double[shifted_right] / scale) * scale
    for index in np.argwhere(regular & (np.abs(power) > EXACT)):
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


def rows_of(curves: Curves) -> dict[str, Array]:
    """The rows of a run by column: seed, round, and its curves; NaN where a curve has no entry."""
    rounds = curves.rounds
    shape = len(curves.seeds), len(rounds)
    columns: dict[str, Array] = {
        "seed": np.repeat(np.asarray(curves.seeds, dtype=np.int64), shape[1]),
        "round": np.tile(rounds.astype(np.int32), shape[0]),
    }
    at_rounds = np.searchsorted(rounds, curves.evaluated)
    for name, values in curves.metrics.items():
        columns[name] = _spread(values, at_rounds, shape)
    from_start = np.searchsorted(rounds, np.arange(curves.evaluated[-1]))
    for name, values in curves.info.items():
        columns[info_column(name, curves.metrics)] = _spread(values, from_start, shape)
    return columns


def info_column(name: str, metrics: Iterable[str]) -> str:
    """The column of what a method says of its rounds; apart from a metric of the same name."""
    return f"{name}_of_round" if name in metrics else name


def _spread(values: Array, columns: Array, shape: tuple[int, int]) -> Array:
    """The entries of a curve at some of the rounds of a table, seed after seed."""
    spread = np.full(shape, np.nan)
    spread[:, columns] = values
    return spread.ravel()


def curves_at(
    columns: Mapping[str, Array],
    rows: slice,
    seeds: Sequence[int],
    evaluated: Sequence[int],
    metrics: Iterable[str],
    info: Iterable[str],
) -> Curves:
    """The curves of a run again, from its rows of a table."""
    read = Curves(seeds, evaluated, {}, dict.fromkeys(info))  # type: ignore[arg-type]
    rounds = read.rounds
    shape = len(seeds), len(rounds)
    at_rounds = np.searchsorted(rounds, evaluated)
    from_start = np.searchsorted(rounds, np.arange(evaluated[-1]))

    def entries(column: str, chosen: Array) -> Array:
        values = columns[column][rows].reshape(shape)
        return exact(values[:, chosen])

    names = tuple(metrics)
    return Curves(
        seeds,
        evaluated,
        {name: entries(name, at_rounds) for name in names},
        {name: entries(info_column(name, names), from_start) for name in read.info},
    )


def write(path_or_file: Any, runs: Sequence[Mapping[str, Any]]) -> None:
    """Write a table as a Parquet file that any reader of the format opens.

    Parameters
    ----------
    path_or_file : where to.
    runs : for each run its `profile`, `run`, `labels` and `rows` (see `rows_of`).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    lengths = [len(run["rows"]["seed"]) for run in runs]
    columns: dict[str, Any] = {
        "profile": _words([run["profile"] for run in runs], lengths),
        "run": _words([run["run"] for run in runs], lengths),
    }
    for label in dict.fromkeys(name for run in runs for name in run["labels"]):
        values = [run["labels"].get(label) for run in runs]
        columns[label] = _labels(values, lengths)
    for name in ("seed", "round"):
        columns[name] = np.concatenate([run["rows"][name] for run in runs])
    curves = dict.fromkeys(
        name for run in runs for name in run["rows"] if name not in ("seed", "round")
    )
    for name in curves:
        pieces = [
            run["rows"].get(name, np.full(length, np.nan))
            for run, length in zip(runs, lengths, strict=True)
        ]
        columns[name] = pa.array(compact(np.concatenate(pieces)), from_pandas=True)
    pq.write_table(
        pa.table(columns),
        path_or_file,
        compression="zstd",
        compression_level=9,
        use_dictionary=[name for name in columns if name not in curves],
        use_byte_stream_split=[*curves],
        write_page_checksum=True,
    )


def _words(values: Sequence[str], lengths: Sequence[int]) -> Any:
    """A column of texts, each repeated for the rows of its run."""
    import pyarrow as pa

    distinct = list(dict.fromkeys(values))
    codes = np.repeat([distinct.index(value) for value in values], lengths)
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(distinct))


def _labels(values: Sequence[Any], lengths: Sequence[int]) -> Any:
    """A column of labels: texts, truth values or numbers; null where a run has none."""
    import pyarrow as pa

    rows = np.repeat(np.arange(len(values)), lengths)
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in present):
        return pa.array(values, pa.bool_()).take(pa.array(rows))
    if all(isinstance(value, (int, float)) for value in present):
        numbers = [None if value is None else float(value) for value in values]
        return pa.array(numbers, pa.float64()).take(pa.array(rows))
    words = [None if value is None else str(value) for value in values]
    return pa.array(words).dictionary_encode().take(pa.array(rows))


class Table:
    """A study's table in memory: columns as arrays, and the rows of each run."""

    def __init__(self, columns: Mapping[str, Array], rows: Mapping[tuple[str, str], slice]) -> None:
        self.columns = columns
        self.rows = rows


def read(path: Any) -> Table:
    """The table in a Parquet file; curves as they are stored, in single or double precision."""
    import pyarrow.parquet as pq

    content = pq.read_table(path, page_checksum_verification=True)
    runs = [content["profile"].combine_chunks(), content["run"].combine_chunks()]
    codes = np.stack([np.asarray(column.indices) for column in runs])
    starts = np.flatnonzero(np.any(np.diff(codes, axis=1) != 0, axis=0)) + 1
    edges = [0, *starts.tolist(), content.num_rows] if content.num_rows else []
    names = [column.dictionary.to_pylist() for column in runs]
    rows = {}
    for start, end in pairwise(edges):
        profile, run = (words[code] for words, code in zip(names, codes[:, start], strict=True))
        rows[profile, run] = slice(start, end)
    columns = {
        name: content[name].to_numpy()
        for name in content.column_names
        if content.schema.field(name).type in float_types()
    }
    return Table(columns, rows)


def float_types() -> tuple[Any, ...]:
    """The types of columns of curves."""
    import pyarrow as pa

    return pa.float32(), pa.float64()


def frame(path: Any) -> pd.DataFrame:
    """The whole table as a frame of pandas: labels, seed and round, curves with six digits."""
    import pandas as pd

    table = pd.read_parquet(path)
    for name in table.columns:
        if table[name].dtype == np.float32:
            table[name] = six_digits(table[name].to_numpy())
    return table
