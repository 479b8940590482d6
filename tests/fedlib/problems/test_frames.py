"""Problems from data frames: values by hand, columns of every kind, one sentence for mistakes."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from fedlib import problems
from tests.helpers.expect import close, refuses

NUMBERS = np.random.default_rng(0).normal(size=(16, 2))
FRAME = pd.DataFrame(NUMBERS, columns=["age", "dose"])
FRAME["hospital"] = [*"aaaaaaabbbbccccc"]
FRAME["ill"] = np.arange(16) % 2.0
SINGLE = nn.Linear(2, 1)


def net(inputs=2):
    layer = nn.Linear(inputs, 1).double()
    nn.init.constant_(layer.weight, 0.3)
    nn.init.constant_(layer.bias, -0.1)
    return layer


def loss_of(rows, ill):
    logits = rows.output.squeeze(-1)
    losses = binary_cross_entropy_with_logits(logits, rows.target, reduction="none")
    return rows.mean(losses, where=rows.target == ill)


def healthy(rows):
    return loss_of(rows, 0)


def missed(rows):
    return loss_of(rows, 1)


def make(frame=FRAME, **changes):
    options = {
        "client": "hospital",
        "target": "ill",
        "module": net(),
        "objective": healthy,
        "constraint": missed,
        **changes,
    }
    return problems.from_frame(frame, **options)


def by_hand(ill):
    """The mean over hospitals of the mean loss of one class."""
    z = torch.from_numpy(0.3 * NUMBERS.sum(1) - 0.1)
    losses = softplus(z) - ill * z
    chosen = FRAME.assign(loss=losses.numpy())[FRAME.ill == ill]
    return chosen.groupby("hospital").loss.mean().mean()


def test_values_are_those_by_hand_and_padding_does_not_count():
    problem = make()
    assert problem.sizes == (7, 4, 5)
    metrics = problem.metrics(problem.w0, problem)
    assert float(metrics["f"]) == pytest.approx(
        by_hand(0),
        abs=1e-9,
    )  # the model is float32
    assert float(metrics["g"]) == pytest.approx(by_hand(1), abs=1e-9)


def test_measures_are_of_the_rows_held_out():
    measures = {
        "share": lambda rows: rows.mean(rows.target),
        "dose": lambda rows: rows.mean(rows.columns["dose"]),
    }
    options = {"measures": measures, "columns": ["dose"], "module": net(1)}
    inside = make(**options)
    heldout = FRAME[:3].assign(ill=1.0, dose=[1.0, 2.0, 6.0])
    outside = make(heldout=heldout.drop(columns="hospital"), **options)
    metrics = inside.metrics(inside.w0, inside)
    means = FRAME.groupby("hospital")[["ill", "dose"]].mean().mean()
    assert float(metrics["share"]) == pytest.approx(means.ill)
    assert float(metrics["dose"]) == pytest.approx(means.dose)
    metrics = outside.metrics(outside.w0, outside)
    assert metrics["share"] == 1
    assert metrics["dose"] == 3


def test_several_objectives_and_constraints_have_names():
    problem = make(objective=[healthy, missed], constraint=[missed, healthy])
    metrics = problem.metrics(problem.w0, problem)
    assert metrics["f"] == (metrics["f_1"] + metrics["f_2"]) / 2
    assert metrics["g"] == max(metrics["g_1"], metrics["g_2"])


def test_the_configuration_knows_the_functions_and_the_data():
    config = make().config
    assert config["objective"] == ["healthy"]
    assert config["constraint"] == ["missed"]
    assert config["data"] == "4fce0a1b9077cf52"


FORMS = {
    "nullable": FRAME.astype({"age": "Float64", "ill": "Float64"}),
    "sparse": FRAME.astype({"dose": pd.SparseDtype("float64", 0.0)}),
    "an odd index": FRAME.set_index(np.arange(16) // 3),
    "an index of the client's name": FRAME.rename_axis("hospital"),
}


@pytest.mark.parametrize("frame", FORMS.values(), ids=FORMS)
def test_frames_in_every_form_are_the_same_rows(frame):
    for changed, plain in zip(make(frame).data, make().data, strict=True):
        assert torch.equal(changed, plain)


def test_a_reversed_frame_has_its_clients_in_the_same_order():
    turned = make(FRAME[::-1])
    assert torch.equal(turned.data[0][:7], make().data[0][:7].flip(0))
    close(turned.mean_losses(turned.w0), make().mean_losses(turned.w0))


NOBODY_IN_B = pd.Categorical([*"aaaaaaaaaaaccccc"], categories=[*"abc"])
GAPS = pd.array([*[1] * 15, None], dtype="Int64")
BAD_COLUMNS = [
    ("column 'age' of client 'a' must hold numbers that torch.float32*16777217", "age", 2**24 + 1),
    ("column 'ill' of client 'a' must hold*1e+39", "ill", 1e39),
    ("'age' must hold numbers*.astype(float)", "age", "1"),
    ("'ill' must hold numbers*pandas.factorize", "ill", "yes"),
    ("'age' must hold numbers*get_dummies", "age", "old"),
    ("'age' must hold numbers, got *complex128*real", "age", 1j),
    ("'age' must hold numbers*days since", "age", pd.Timestamp("2020")),
    ("column 'age' of client 'c' must be finite", "age", GAPS),
    ("column 'ill' of client 'a' must be finite, got 16 of 16", "ill", np.inf),
    ("client must name clients by texts or numbers", "hospital", [[1]] * 16),
    ("without a name, got 16; drop these rows", "hospital", None),
    ("client 'b' must have rows, got 0", "hospital", NOBODY_IN_B),
]


@pytest.mark.parametrize(("words", "column", "values"), BAD_COLUMNS)
def test_a_column_that_does_not_fit_is_named(words, column, values):
    frame = FRAME.assign(**{column: values})
    refuses(f"from_frame: *{words}", make, frame, module=SINGLE)


BAD_OPTIONS = [
    ("must hold the column 'clinic', got ['age'", {"client": "clinic"}),
    ("hold the column 'dosis', *nearest: 'dose'", {"features": ["age", "dosis"]}),
    ("each column once, for one purpose, got ['hospital']", {"features": ["hospital"]}),
    ("features must hold at least one column", {"features": []}),
    ("features must be a list of columns in a fixed order", {"features": {"age"}}),
    ("heldout must have rows", {"heldout": FRAME[:0]}),
    ("column 'age' of heldout must be finite", {"heldout": FRAME.assign(age=np.nan)}),
    ("heldout must hold the column 'dose'", {"heldout": FRAME[["age", "ill"]]}),
]


@pytest.mark.parametrize(("words", "options"), BAD_OPTIONS)
def test_a_column_that_is_not_there_or_named_twice(words, options):
    refuses(f"from_frame: *{words}", make, **options)


def test_whole_numbers_fit_a_module_of_doubles_and_the_columns_that_functions_see():
    large = FRAME.assign(age=2**24 + 1)
    assert make(large, constraint=()).data[0][4, 0] == 2**24 + 1
    apart = make(large, module=nn.Linear(1, 1), columns=["age"])
    assert apart.data[2].tolist() == [2**24 + 1] * 16


@pytest.mark.parametrize("dtype", ["int64", "Int64"])
def test_the_first_whole_number_that_a_double_cannot_hold(dtype):
    """2^53 + 1 becomes 2^53, without a difference that a comparison of floats could see."""
    column = pd.array([2**53 + 1] * 16, dtype=dtype)
    words = "column 'age' of client 'a' must hold numbers that torch.float64 can hold"
    refuses(f"{words}, got 9007199254740993", make, FRAME.assign(age=column))


@pytest.mark.parametrize("form", [tuple, iter, np.array, pd.Index])
def test_features_in_an_order(form):
    problem = make(features=form(["dose", "age"]))
    assert torch.equal(problem.data[0], make().data[0].flip(1))


def test_columns_of_several_levels():
    frame = FRAME.set_axis(pd.MultiIndex.from_product([["id"], FRAME.columns]), axis=1)
    problem = make(frame, client=("id", "hospital"), target=("id", "ill"))
    assert torch.equal(problem.data[0], make().data[0])
    refuses("frame must hold the column 'hospital', *nearest: ('id', 'hospital')", make, frame)


def test_columns_of_one_name_and_in_the_index():
    twice = FRAME.set_axis(["age", "age", "hospital", "ill"], axis=1)
    refuses("must name each column once, for one purpose, got ['age']", make, twice)
    refuses(
        "must hold one column 'age'",
        make,
        twice,
        module=net(1),
        features=["age"],
    )
    indexed = FRAME.set_index("hospital")
    refuses("the column 'hospital', *frame.reset_index()", make, indexed)


class Polars:
    """A data frame of another library."""

    columns = ("age", "dose", "hospital", "ill")


def test_frames_of_other_libraries_are_told_of_pandas():
    words = "must be a pandas DataFrame*Polars*.to_pandas()"
    refuses(f"frame {words}", make, Polars(), error=TypeError)
    refuses(f"heldout {words}", make, heldout=Polars(), error=TypeError)
