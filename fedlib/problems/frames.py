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


def check_frame(caller: str, name: str, argument: Any) -> None:
    """Raise TypeError unless an argument is a data frame of pandas."""
    import pandas as pd

    if isinstance(argument, pd.DataFrame):
        return
    cls = type(argument)
    remedy = "convert it, for instance by .to_pandas() or pandas.DataFrame(...)"
    raise TypeError(
        f"{caller}: {name} must be a pandas DataFrame, got a {cls.__module__}.{cls.__name__}; "
        f"{remedy}."
    )


def tensors_of(
    caller: str,
    frame: "DataFrame",
    features: list[Hashable],
    further: Sequence[Hashable],
    client: Hashable | None,
    dtype: torch.dtype,
) -> Rows:
    """Features `[R, p]` and other columns `[R]` of a frame; raises unless all are finite.

    The frame must have each column exactly once, `client` too if it is given, and at least one
    row. The features must fit into `dtype`, in which the module computes.
    """
    checks.require(len(frame), caller, "a frame", "have rows", 0)
    if client is not None:
        check_column_name(caller, frame, client)
    columns = [*features, *further]
    for column in columns:
        check_column_name(caller, frame, column)
    floats = {column: read_floats(caller, frame[column], column) for column in columns}
    for column in features:
        row = first_misfit(frame[column], floats[column], dtype)
        if row is None:
            continue
        name = f"column {column!r}"
        if client is not None:
            name += f" of client {frame[client].iloc[row]!r}"
        rule = f"hold numbers that {dtype} can hold"
        remedy = "scale the column, or convert the module with .double()"
        checks.require(False, caller, name, rule, frame[column].iloc[row], remedy)
    inputs = torch.stack([floats[column] for column in features], 1)
    plain = [read_plain(caller, frame[column], column) for column in further]
    return inputs, *plain


def check_column_name(caller: str, frame: "DataFrame", column: Hashable) -> None:
    """Raise ValueError unless a frame has a column exactly once."""
    labels = [*frame.columns]
    article = "one" if column in labels else "the"
    nearest = get_close_matches(str(column), map(str, labels), n=3)
    remedy = ""
    if nearest:
        remedy = f"nearest: {', '.join(map(repr, nearest))}"
    if column in frame.index.names:
        remedy = "it is the index, so call frame.reset_index() first"
    rule = f"hold {article} column {column!r}"
    checks.require(labels.count(column) == 1, caller, "the frame", rule, labels, remedy)


def read_floats(caller: str, values: "Series[Any]", column: Hashable) -> Tensor:
    """A column as float64 numbers; raises unless they are numbers without gaps."""
    name = f"column {column!r}"
    letter = values.dtype.kind
    remedy = remedy_for(letter)
    if letter == "O":
        remedy = "pass it through pandas.get_dummies"
    checks.require(letter in "biuf", caller, name, "hold numbers", values.dtype, remedy)
    array = values.to_numpy(dtype="float64", na_value=float("nan"))
    floats = as_tensor(caller, name, array)
    checks.finite(caller, name, floats, "drop or impute these rows")
    return floats


def read_plain(caller: str, values: "Series[Any]", column: Hashable) -> Tensor:
    """A column in its own dtype: whole numbers stay whole."""
    # pandas' own dtypes, such as Int64 or Sparse, have a plain dtype of the same name
    dtype = getattr(values.dtype, "subtype", values.dtype)
    dtype = getattr(values.dtype, "numpy_dtype", dtype)
    return as_tensor(caller, f"column {column!r}", values.to_numpy(dtype=dtype))


def first_misfit(values: "Series[Any]", floats: Tensor, dtype: torch.dtype) -> int | None:
    """The first row whose number `dtype` cannot hold, if any.

    That is a float beyond its range, or a whole number that would be rounded to another one.
    """
    rounded = floats.to(dtype).to(floats.dtype)
    misfits = ~rounded.isfinite()
    if values.dtype.kind in "iu":
        misfits = misfits | (rounded != floats)
        misfits = misfits | (floats.abs() > 2**53)
    rows = misfits.nonzero()
    if not len(rows):
        return None
    return int(rows[0])
