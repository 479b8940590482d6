"""The reader of pandas data frames."""

from collections.abc import Callable, Hashable, Sequence
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
    clients: Sequence[Any] | None,
    dtype: torch.dtype,
) -> Rows:
    """Features `[R, p]` and other columns `[R]` of a frame; raises unless all are finite.

    The frame must have each column exactly once, and at least one row. The numbers must fit into
    `dtype`, in which the module computes; whole numbers among the features exactly. `clients` holds
    the client of each row, which error messages name; it is None for held-out rows.
    """
    whole_frame = "frame"
    if clients is None:
        whole_frame = "heldout"
    checks.require(len(frame), caller, whole_frame, "have rows", 0)
    columns = [*features, *further]
    for column in columns:
        check_column_name(caller, frame, column, whole_frame)

    def name_of(column: Hashable, row: int) -> str:
        owner = "heldout"
        if clients is not None:
            owner = f"client {clients[row]!r}"
        return f"column {column!r} of {owner}"

    floats = {}
    for column in columns:
        is_feature = column in features
        floats[column] = read_floats(caller, frame[column], column, name_of, is_feature)
        row = first_misfit(frame[column], floats[column], dtype, exact=is_feature)
        if row is not None:
            rule = f"hold numbers that {dtype} can hold"
            remedy = "scale the column, or convert the module with .double()"
            number = frame[column].iloc[row]
            checks.require(False, caller, name_of(column, row), rule, number, remedy)
    inputs = torch.stack([floats[column] for column in features], 1)
    plain = [read_plain(caller, frame[column], column) for column in further]
    return inputs, *plain


def client_of_rows(caller: str, frame: "DataFrame", client: Hashable) -> list[Any]:
    """The client of each row; raises ValueError unless the column names each row's client."""
    check_column_name(caller, frame, client)
    labels = frame[client]
    nameless = int(labels.isna().sum())
    remedy = "drop these rows, or name their clients"
    checks.require(not nameless, caller, "client", "leave no row without a name", nameless, remedy)
    names = list(labels.tolist())
    for name in names:
        fits = isinstance(name, Hashable)
        rule = f"name clients by texts or numbers in column {client!r}"
        checks.require(fits, caller, "client", rule, name, "convert them with .astype(str)")
    return names


def check_column_name(
    caller: str, frame: "DataFrame", column: Hashable, frame_name: str = "frame"
) -> None:
    """Raise ValueError unless a frame has a column exactly once."""
    labels = [*frame.columns]
    article = "the"
    if column in labels:
        article = "one"
    shown = {str(label).lower(): label for label in labels}
    matches = get_close_matches(str(column).lower(), shown, n=3)
    nearest = [shown[text] for text in matches]
    nearest += [label for label in labels if isinstance(label, tuple) and column in label]
    remedy = ""
    if nearest:
        remedy = f"nearest: {', '.join(map(repr, nearest))}"
    if column in frame.index.names:
        remedy = "it is the index, so call frame.reset_index() first"
    rule = f"hold {article} column {column!r}"
    checks.require(labels.count(column) == 1, caller, frame_name, rule, labels, remedy)


def read_floats(
    caller: str,
    values: "Series[Any]",
    column: Hashable,
    name_of: Callable[[Hashable, int], str],
    is_feature: bool,
) -> Tensor:
    """A column as float64 numbers; raises unless they are numbers without gaps.

    `name_of(column, row)` names the column and the row's client.
    """
    name = f"column {column!r}"
    letter = values.dtype.kind
    remedy = remedy_for(letter)
    if letter == "O":
        remedy = "pass it through pandas.get_dummies"
        if not is_feature:
            remedy = "number its values with pandas.factorize"
        if are_numbers(values):
            remedy = "convert it with .astype(float)"
    checks.require(letter in "biuf", caller, name, "hold numbers", values.dtype, remedy)
    array = values.to_numpy(dtype="float64", na_value=float("nan"))
    floats = as_tensor(caller, name, array)
    gaps = (~floats.isfinite()).nonzero()
    if len(gaps):
        cell = name_of(column, int(gaps[0]))
        checks.finite(caller, cell, floats, "drop or impute these rows")
    return floats


def are_numbers(values: "Series[Any]") -> bool:
    """Whether a column of objects or texts holds numbers, such as Decimals or "3.5"."""
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    return True


def read_plain(caller: str, values: "Series[Any]", column: Hashable) -> Tensor:
    """A column in its own dtype: whole numbers stay whole."""
    # pandas' own dtypes, such as Int64 or Sparse, have a plain dtype of the same name
    dtype = getattr(values.dtype, "subtype", values.dtype)
    dtype = getattr(values.dtype, "numpy_dtype", dtype)
    return as_tensor(caller, f"column {column!r}", values.to_numpy(dtype=dtype))


def first_misfit(
    values: "Series[Any]", floats: Tensor, dtype: torch.dtype, *, exact: bool
) -> int | None:
    """The first row whose number `dtype` cannot hold, if any.

    That is a float beyond its range, or if `exact`, a whole number that would be rounded.
    """
    rounded = floats.to(dtype).to(floats.dtype)
    if values.dtype.kind in "iu":
        if not exact:  # it stays a whole number
            return None
        misfits = (rounded != floats) | (floats.abs() >= 2**53)
    else:
        misfits = ~rounded.isfinite()
    rows = misfits.nonzero()
    if not len(rows):
        return None
    return int(rows[0])
