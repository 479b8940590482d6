"""The reader of pandas data frames."""

from collections.abc import Hashable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fedlib import checks
from fedlib.problems.readers import Rows, as_tensor, remedy_for

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def check_frame(who: str, name: str, given: Any) -> None:
    """Raise TypeError unless an argument is a data frame of pandas."""
    import pandas as pd

    if isinstance(given, pd.DataFrame):
        return
    kind = f"{type(given).__module__}.{type(given).__name__}"
    remedy = "convert it, for instance by .to_pandas() or pandas.DataFrame(...)"
    raise TypeError(f"{who}: {name} must be a pandas DataFrame, got a {kind}; {remedy}.")


def tensors_of(
    who: str,
    frame: "DataFrame",
    features: list[Hashable],
    others: Sequence[Hashable],
    client: Hashable | None,
    dtype: torch.dtype,
) -> Rows:
    """Features `[R, p]` and other columns `[R]` of a frame; raises unless all are finite.

    The frame must have each column exactly once, `client` too if it is given, and at least one
    row. The features must fit into `dtype`, in which the module computes.
    """
    checks.require(len(frame), who, "a frame", "have rows", 0)
    wanted = [*features, *others]
    for column in wanted if client is None else [client, *wanted]:
        check_column_name(who, frame, column)
    floats = {column: read_floats(who, frame[column], column) for column in wanted}
    for column in features:
        row = first_misfit(frame[column], floats[column], dtype)
        if row is not None:
            name = f"column {column!r}"
            if client is not None:
                name += f" of client {frame[client].iloc[row]!r}"
            rule = f"hold numbers that {dtype} can hold"
            got = frame[column].iloc[row]
            remedy = "scale the column, or convert the module with .double()"
            checks.require(False, who, name, rule, got, remedy)
    inputs = torch.stack([floats[column] for column in features], 1)
    return inputs, *(read_plain(who, frame[column], column) for column in others)


def check_column_name(who: str, frame: "DataFrame", column: Hashable) -> None:
    """Raise ValueError unless a frame has a column exactly once."""
    labels = [*frame.columns]
    article = "one" if column in labels else "the"
    near = ", ".join(map(repr, get_close_matches(str(column), map(str, labels), n=3)))
    remedy = f"nearest: {near}" if near else ""
    if column in frame.index.names:
        remedy = "it is the index, so call frame.reset_index() first"
    rule = f"hold {article} column {column!r}"
    checks.require(labels.count(column) == 1, who, "the frame", rule, labels, remedy)


def read_floats(who: str, values: "Series[Any]", column: Hashable) -> Tensor:
    """A column as float64 numbers; raises unless they are numbers without gaps."""
    name = f"column {column!r}"
    kind = values.dtype.kind
    remedy = "pass it through pandas.get_dummies" if kind == "O" else remedy_for(kind)
    checks.require(kind in "biuf", who, name, "hold numbers", values.dtype, remedy)
    array = values.to_numpy(dtype="float64", na_value=float("nan"))
    floats = as_tensor(who, name, array)
    checks.finite(who, name, floats, "drop or impute these rows")
    return floats


def read_plain(who: str, values: "Series[Any]", column: Hashable) -> Tensor:
    """A column in its own dtype: whole numbers stay whole."""
    # pandas' own dtypes, such as Int64 or Sparse, have a plain dtype of the same name
    dtype = getattr(values.dtype, "numpy_dtype", getattr(values.dtype, "subtype", values.dtype))
    return as_tensor(who, f"column {column!r}", values.to_numpy(dtype=dtype))


def first_misfit(values: "Series[Any]", floats: Tensor, dtype: torch.dtype) -> int | None:
    """The first row whose number `dtype` cannot hold, if any.

    That is a float beyond its range, or a whole number that would be rounded to another one.
    """
    held = floats.to(dtype).to(floats.dtype)
    bad = ~held.isfinite()
    if values.dtype.kind in "iu":
        bad = bad | (held != floats)
        bad = bad | (floats.abs() > 2**53)
    rows = bad.nonzero()
    return int(rows[0]) if len(rows) else None
