"""What comes in: every form that people's data have gives the same problem, or one sentence."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from fedlib import problems
from tests.helpers.expect import refuses

RNG = torch.Generator().manual_seed(0)
X = torch.randn(12, 3, generator=RNG)
Y = torch.randn(12, generator=RNG)
WHOLE = TensorDataset(X, Y)


def square(rows):
    return rows.mean((rows.output.squeeze(-1) - rows.target) ** 2)


def make(*clients, module=None, **options):
    module = module or nn.Linear(3, 1)
    return problems.from_clients(clients, module=module, objective=square, **options)


def make_frame(frame, module=None, **options):
    module = module or nn.Linear(2, 1)
    options = {
        "client": "c",
        "target": "y",
        "module": module,
        "objective": square,
        **options,
    }
    return problems.from_frame(frame, **options)


def table(**columns):
    base = {
        "a": np.arange(6.0),
        "b": np.ones(6),
        "c": [0, 0, 0, 1, 1, 1],
        "y": np.arange(6) / 7,
    }
    return pd.DataFrame({**base, **columns})


class Stream(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


class SizedStream(Stream):
    def __len__(self):
        return len(self.rows)


class NoLength(Dataset):
    def __getitem__(self, index):
        if index >= len(X):
            raise IndexError
        return X[index], Y[index]


class Computed(Dataset):
    """Four samples, each of which a function makes of its number."""

    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.sample(index)


class Endless(SequentialSampler):
    def __iter__(self):
        while True:
            yield 0


class Renamed(DataLoader):
    """A loader that makes its own batches."""

    def __iter__(self):
        for x, y in super().__iter__():
            yield 2 * x, y


SAMPLES = list(WHOLE)
LOADERS = {
    "shuffled": (DataLoader(WHOLE, 5, shuffle=True), range(12)),
    "random subset": (DataLoader(WHOLE, 2, sampler=SubsetRandomSampler([9, 4, 7])), (4, 7, 9)),
    "last dropped": (DataLoader(WHOLE, 5, drop_last=True), range(10)),
    "a batch sampler": (DataLoader(WHOLE, batch_sampler=[[0, 3], [3, 5]]), (0, 3, 3, 5)),
    "sampled batches": (
        DataLoader(WHOLE, batch_size=None, sampler=BatchSampler(range(7), 3, drop_last=True)),
        range(6),
    ),
    "no batches": (DataLoader(WHOLE, batch_size=None), range(12)),
    "a stream": (DataLoader(Stream(SAMPLES[:5]), 2), range(5)),
    "a stream without batches": (DataLoader(Stream(SAMPLES[:5]), batch_size=None), range(5)),
}
DATASETS = {
    "a stream": (Stream(SAMPLES[:7]), range(7)),
    "a stream with a length": (SizedStream(SAMPLES[:7]), range(7)),
    "no length": (NoLength(), range(12)),
    "a subset": (Subset(WHOLE, [3, 1]), (3, 1)),
}


@pytest.mark.parametrize(
    ("source", "places"), [*LOADERS.values(), *DATASETS.values()], ids=[*LOADERS, *DATASETS]
)
def test_a_client_holds_the_samples_of_its_loader(source, places):
    problem = make(source, (X, Y))
    chosen = torch.tensor([*places])
    assert problem.sizes == (len(chosen), 12)
    assert torch.equal(problem.data[0][: len(chosen)], X[chosen])
    assert torch.equal(problem.data[1][: len(chosen)], Y[chosen])


def test_random_samplers_give_what_they_draw():
    weights = torch.tensor([1.0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    rng = torch.Generator().manual_seed(0)
    sampler = WeightedRandomSampler(weights, 8, generator=rng)
    problem = make(DataLoader(WHOLE, 3, sampler=sampler))
    assert problem.sizes == (8,)
    assert {*problem.data[1].tolist()} <= {Y[0].item(), Y[3].item()}
    five = RandomSampler(WHOLE, num_samples=5, generator=rng)
    assert make(DataLoader(WHOLE, 3, sampler=five)).sizes == (5,)


def test_a_loader_that_makes_its_own_batches_is_asked_for_them():
    problem = make(Renamed(WHOLE, 5))
    assert torch.equal(problem.data[0], 2 * X)


def test_heldout_may_be_a_stream():
    loader = DataLoader(Stream(SAMPLES[:5]), 2)
    assert torch.equal(make((X, Y), heldout=loader).heldout[0], X[:5])
    refuses("heldout must have rows, got 0", make, (X, Y), heldout=Subset(WHOLE, []))


UNREADABLE = {
    "an empty stream": (Stream([]), "client 1 must have rows, got 0"),
    "an empty dataset": (Subset(WHOLE, []), "client 1 must have rows, got 0"),
    "several lengths": (
        Computed(lambda k: (torch.ones(k + 2), 1.0)),
        "client 1 must have samples that can be stacked, but failed: stack expects",
    ),
    "objects": (
        Computed(lambda _: (object(), 1.0)),
        "client 1 must have samples that can be stacked",
    ),
    "texts": (Computed(lambda _: ("word", 1.0)), "inputs of client 1 must hold real numbers"),
    "an error": (
        Computed(lambda k: 1 / (k - 2)),
        "must give its samples, but failed: division",
    ),
    "places that are not there": (
        DataLoader(WHOLE, 2, sampler=SubsetRandomSampler([99])),
        "client 1 must give its samples, but failed",
    ),
    "batches of several widths": (
        DataLoader(Stream([(torch.ones(2, k), torch.ones(2)) for k in (1, 2)]), batch_size=None),
        "client 1 must have samples that can be stacked",
    ),
}


@pytest.mark.parametrize(("source", "words"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_source_that_cannot_be_read_is_one_sentence(source, words):
    refuses(f"from_clients: *{words}", make, (X, Y), source, error=(ValueError, TypeError))


def test_a_sampler_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr("fedlib.problems.datasets.MOST_SAMPLES", 100)
    loader = DataLoader(WHOLE, 2, sampler=Endless(WHOLE))
    refuses("the sampler of client 0 must come to an end", make, loader)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided_field(array):
    record = np.zeros(array.shape, dtype=[("skip", "i1"), ("value", "f4")])
    record["value"] = array
    return record["value"]


class Sub(torch.Tensor):
    pass


NUMPY = X.numpy()
FORMS = {
    "reversed": np.ascontiguousarray(NUMPY[::-1])[::-1],
    "read-only": read_only(NUMPY),
    "Fortran order": np.asfortranarray(NUMPY),
    "the other byte order": NUMPY.astype(NUMPY.dtype.newbyteorder()),
    "a field of records": strided_field(NUMPY),
    "objects that are numbers": NUMPY.astype(object),
    "masked without gaps": np.ma.masked_array(NUMPY, mask=False),
    "long floats": NUMPY.astype(np.longdouble),
    "a frame": pd.DataFrame(NUMPY),
    "a reversed frame": pd.DataFrame(NUMPY[::-1].copy())[::-1],
    "lists": NUMPY.tolist(),
    "a list of tensors": list(X),
    "a tuple of arrays": tuple(NUMPY),
    "a parameter": nn.Parameter(X),
    "a subclass": X.as_subclass(Sub),
    "a negated view": torch.complex(X, -X).conj().imag,
    "every second": torch.stack([X, X], 1).flatten(0, 1)[::2],
    "a memory map": None,
}


@pytest.mark.parametrize("form", FORMS)
def test_arrays_in_every_form_are_the_same_rows(form, tmp_path):
    inputs = FORMS[form]
    if form == "a memory map":
        np.save(tmp_path / "x.npy", NUMPY)
        inputs = np.load(tmp_path / "x.npy", mmap_mode="r")
    problem = make((inputs, Y))
    assert type(problem.data[0]) is torch.Tensor
    assert torch.equal(problem.data[0], X)
    assert not problem.data[0].requires_grad


def test_a_series_is_read_by_place_and_not_by_label():
    y = pd.Series(Y.numpy(), index=range(11, -1, -1))
    assert torch.equal(make((X, y)).data[1], Y)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "uint16", "uint32", "uint64", "int16", "int32", "int64"]
)
def test_whole_numbers_and_truth_values_of_every_width(dtype):
    target = (np.arange(12) % 2).astype(dtype)
    for values in (target, torch.from_numpy(target)):
        data = make((X, values)).data[1]
        assert data.tolist() == target.tolist()
        assert data.dtype == (torch.float32 if dtype == "bool" else torch.int64)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_quantized_numbers_are_dequantized():
    inputs = torch.quantize_per_tensor(torch.ones(12, 3), 0.5, 0, torch.qint8)
    assert torch.equal(make((inputs, Y)).data[0], torch.ones(12, 3))


def test_floats_of_eight_bits_are_their_numbers():
    inputs = torch.arange(36.0).view(12, 3).to(torch.float8_e4m3fn)
    assert torch.equal(make((inputs, Y)).data[0], inputs.float())


def test_dicts_are_read_by_their_names():
    x = X[:, :1]
    y = Y.unsqueeze(1)

    def wide(rows):
        return rows.mean((rows.output - rows.target).squeeze(-1) ** 2)

    clients = [{"x": x, "y": y}, {"y": y, "x": x}]
    problem = problems.from_clients(clients, module=nn.Linear(1, 1), objective=wide)
    assert torch.equal(problem.data[0], torch.cat([x, x]))
    assert torch.equal(problem.data[1], torch.cat([y, y]))
    words = "client 1 must have the entries ['x', 'y'], as the clients before, got ['x', 'z']"
    refuses(words, make, {"x": X, "y": Y}, {"x": X, "z": Y})


LARGE = 2**24 + 1  # the first whole number that a float32 cannot hold
BESIDE = "of client 1 must hold whole numbers that torch.float32 can hold beside other"


@pytest.mark.parametrize(
    ("client", "subject", "position"),
    [
        ((torch.full_like(X, LARGE, dtype=torch.int64), Y), "inputs", 0),
        ((X, torch.full_like(Y, LARGE, dtype=torch.int64)), "target", 1),
    ],
    ids=["inputs", "target"],
)
def test_whole_numbers_beside_the_floats_of_others_stay_what_they_are(client, subject, position):
    refuses(f"{subject} {BESIDE}", make, (X, Y), client)
    double = make((X, Y), client, module=nn.Linear(3, 1).double())
    assert torch.equal(double.data[position][12:], client[position].double())


def test_small_whole_numbers_become_floats_beside_those_of_others():
    problem = make((X, Y), (X.round().long(), Y))
    assert torch.equal(problem.data[0][12:], X.round())


def test_heldout_rows_have_the_dtypes_of_the_clients():
    problem = make((X, Y), heldout=(X.round().long(), Y.round().long()))
    assert [x.dtype for x in problem.heldout] == [torch.float32] * 2
    assert torch.equal(problem.heldout[0], X.round())


CLIENTS = {
    "a further entry": (
        (X, Y, Y),
        "client 1 must be 2 tensors: inputs, target, got 3; name further ones",
    ),
    "one tensor": (
        X,
        "client 1 must be a tuple (inputs, target), a dict, a Dataset or a DataLoader, got",
    ),
    "a class": (Computed, "client 1 must be a tuple*got <class *write Computed(...)"),
    "a Dataset of inputs alone": (
        Computed(lambda _: X[0]),
        "must be a tuple (inputs, target), a dict",
    ),
    "a target in a dict": (
        Computed(lambda k: (X[k], {"label": 1})),
        "target of client 1 must hold real numbers (a dict)",
    ),
}


@pytest.mark.parametrize(("client", "words"), CLIENTS.values(), ids=CLIENTS)
def test_a_client_of_another_form_is_told_the_forms(client, words):
    refuses(f"*{words}", make, (X, Y), client, error=(ValueError, TypeError))


def test_columns_and_weights_of_clients():
    refuses("columns must name each column once, got ['z']", make, (X, Y, Y, Y), columns=["z"] * 2)
    refuses(
        "from_clients: weights[1] must be positive, got 0", make, (X, Y), (X, Y), weights=[1, 0]
    )


def masked_tensor():
    from torch.masked import masked_tensor

    return masked_tensor(X, X > 0)


def sparse():
    from scipy.sparse import csr_array

    return csr_array(NUMPY)


GAPS = np.ma.masked_array(NUMPY, mask=NUMPY > 0)
REFUSED = {
    "gaps": (lambda: GAPS, f"must have no masked entries, got {int((NUMPY > 0).sum())}"),
    "a masked tensor": (masked_tensor, "must have no masked entries"),
    "complex": (lambda: X + 1j, "must hold real numbers, got complex64 [12, 3]; pass the real"),
    "complex of numpy": (lambda: NUMPY + 1j, "must hold real numbers (complex64)*pass the real"),
    "dates": (lambda: np.zeros((12, 3), "M8[D]"), "real numbers (datetime64[D])*days since"),
    "texts": (lambda: np.full((12, 3), "a"), "must hold real numbers (<U1)*encode"),
    "nothing": (lambda: [[1.0, None, 2.0]] * 12, "numbers (object)*drop or impute the rows"),
    "pandas' gaps": (
        lambda: pd.array([None, *[True] * 11], dtype="boolean"),
        "numbers (object)*drop or impute the rows with gaps",
    ),
    "rows that come once": (lambda: iter(X), "real numbers*pass list(...)"),
    "decimals": (lambda: [[Decimal(1)] * 3] * 12, "must hold real numbers (object)"),
    "rows of several lengths": (lambda: [[1.0], [1.0, 2.0]], "must hold real numbers (setting"),
    "records": (lambda: np.zeros(12, [("a", "f4"), ("b", "f4")]), "an array of one kind"),
    "sparse of scipy": (sparse, "must hold real numbers (object)*call .toarray()"),
    "sparse": (X.to_sparse, "must be dense*call .to_dense()"),
    "without values": (lambda: X.to("meta"), "must hold its own values"),
    "one number": (lambda: torch.tensor(1.0), "must have a row a sample, got 'a single number'"),
    "too large": (lambda: np.full((12, 3), 2**64 - 1, np.uint64), "whole numbers below 2^63"),
    "beyond float32": (lambda: X.double() * 1e300, "hold numbers that torch.float32 can hold"),
    "infinite": (lambda: X / 0, "must be finite, got 36 of 36 entries"),
}


@pytest.mark.parametrize(("make_inputs", "words"), REFUSED.values(), ids=REFUSED)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_what_is_no_real_number_is_one_sentence_with_the_client(make_inputs, words):
    words = f"from_clients: inputs of client 1 *{words}"
    refuses(words, make, (X, Y), (make_inputs(), Y), error=(ValueError, TypeError))


def test_large_numbers_fit_a_module_of_doubles():
    problem = make((X.double() * 1e100, Y), module=nn.Linear(3, 1).double())
    assert problem.data[0].dtype == torch.float64
    refuses(
        "target of client 0 must hold numbers that torch.float16 can",
        make,
        (X, Y * 1e6),
        module=nn.Linear(3, 1).half(),
    )


COLUMNS = {
    "nullable": lambda t: t.astype({"a": "Int64", "b": "boolean", "y": "Float64"}),
    "sparse": lambda t: t.astype({"b": pd.SparseDtype("float64", 0.0)}),
    "reversed twice": lambda t: t[::-1].copy()[::-1],
    "half": lambda t: t.astype({"a": "float16"}),
    "small": lambda t: t.astype({"a": "uint8", "b": "bool"}),
    "an odd index": lambda t: t.set_index(np.array([5, 5, 1, 0, 9, 9])),
    "an index of the client's name": lambda t: t.set_index(pd.Index(range(6), name="c")),
    "one block": lambda t: pd.DataFrame(t.to_numpy(), columns=t.columns),
}


@pytest.mark.parametrize("change", COLUMNS.values(), ids=COLUMNS)
def test_frames_in_every_form_are_the_same_rows(change):
    module = nn.Linear(2, 1)
    plain = make_frame(table(), module)
    changed = make_frame(change(table()), module)
    for mine, theirs in zip(plain.data, changed.data, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def test_a_reversed_frame_has_its_clients_in_the_same_order():
    module = nn.Linear(2, 1)
    plain = make_frame(table(), module)
    turned = make_frame(table()[::-1], module)
    assert torch.equal(turned.data[0][:3], plain.data[0][:3].flip(0))
    torch.testing.assert_close(turned.mean_losses(turned.w0), plain.mean_losses(plain.w0))


class Polars:
    """A data frame of another library."""

    columns = ("a", "b", "c", "y")


BAD_COLUMNS = {
    "identifiers": (
        {"a": [1, 2, 3, 4, 2**24 + 1, 6]},
        "column 'a' of client *1* must hold numbers that torch.float32 can hold, got *16777217",
    ),
    "beyond float64": ({"a": [1, 2, 3, 2**62 + 1, 5, 6]}, "column 'a' of client 1 must hold"),
    "huge target": ({"y": [1.0, 1e39, 1, 1, 1, 1]}, "column 'y' of client 0 must hold*1e+39"),
    "decimals": ({"a": [Decimal(1)] * 6}, "'a' must hold numbers*.astype(float)"),
    "texts that are numbers": ({"a": [*"123456"]}, "'a' must hold numbers*.astype(float)"),
    "classes that are texts": ({"y": [*"ababab"]}, "'y' must hold numbers*pandas.factorize"),
    "clients that are lists": ({"c": [[1]] * 6}, "client must name clients by texts or numbers"),
    "rows of no client": ({"c": [1, 2, None, 1, 2, 2]}, "without a name, got 1; drop these rows"),
    "huge": ({"b": [1.0, 1e39, 1, 1, 1, 1]}, "column 'b' of client *0* must hold numbers*1e+39"),
    "complex": ({"a": np.arange(6) * 1j}, "'a' must hold numbers, got *complex128*real"),
    "dates": ({"a": pd.date_range("2020", periods=6)}, "'a' must hold numbers*days since"),
    "categories": ({"a": pd.Categorical([*"abcabc"])}, "'a' must hold numbers*get_dummies"),
    "gaps": (
        {"a": pd.array([1, None, 3, 4, 5, 6], dtype="Int64")},
        "'a' of client 0 must be finite",
    ),
    "infinite": (
        {"y": [1.0, 2, 3, 4, 5, np.inf]},
        "column 'y' of client 1 must be finite, got 1 of 6",
    ),
}


@pytest.mark.parametrize(("changes", "words"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_a_column_that_does_not_fit_is_named(changes, words):
    refuses(f"from_frame: *{words}", make_frame, table(**changes))


def test_identifiers_fit_a_module_of_doubles_and_the_columns_that_functions_see():
    large = table(a=[1, 2, 3, 4, 2**24 + 1, 6])
    assert make_frame(large, nn.Linear(2, 1).double()).data[0][4, 0] == 2**24 + 1
    problem = make_frame(large, nn.Linear(1, 1), columns=["a"])
    assert problem.data[2].tolist() == [1, 2, 3, 4, 2**24 + 1, 6]


def test_the_first_whole_number_that_a_double_cannot_hold():
    """2^53 + 1 becomes 2^53, without a difference that a comparison of floats could see."""
    double = nn.Linear(2, 1).double()
    for dtype in ("int64", "Int64"):
        column = pd.array([1, 2, 3, 4, 2**53 + 1, 6], dtype=dtype)
        words = "column 'a' of client 1 must hold numbers that torch.float64 can hold"
        refuses(f"{words}, got 9007199254740993", make_frame, table(a=column), double)


def test_features_have_an_order():
    for features in ("ab", {"a", "b"}):
        words = "features must be a list of columns in a fixed order, got *write them in brackets"
        refuses(words, make_frame, table(), features=features)
    for features in (("a", "b"), iter("ab"), np.array(["a", "b"]), pd.Index(["a", "b"])):
        assert torch.equal(make_frame(table(), features=features).data[0][:, 1], torch.ones(6))


def test_columns_of_several_levels():
    frame = table()
    frame.columns = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b"), ("id", "c"), ("id", "y")])
    names = {"client": ("id", "c"), "target": ("id", "y")}
    module = nn.Linear(2, 1)
    assert torch.equal(make_frame(frame, module, **names).data[0], make_frame(table()).data[0])
    refuses("frame must hold the column 'c', *nearest: ('id', 'c')", make_frame, frame)


def test_heldout_is_named():
    refuses("from_frame: heldout must have rows", make_frame, table(), heldout=table()[:0])
    gap = table(a=[np.nan] * 6)
    refuses("column 'a' of heldout must be finite", make_frame, table(), heldout=gap)
    refuses("heldout must hold the column 'b'", make_frame, table(), heldout=table()[["a", "y"]])


def test_names_of_columns():
    twice = table()
    twice.columns = ["a", "a", "c", "y"]
    refuses("must name each column once, for one purpose, got ['a']", make_frame, twice)
    narrow = nn.Linear(1, 1)
    refuses("must hold one column 'a'", make_frame, twice, narrow, features=["a"])
    indexed = table().set_index("c")
    refuses("the column 'c', *frame.reset_index()", make_frame, indexed)
    refuses(
        "frame must be a pandas DataFrame*Polars*.to_pandas()",
        make_frame,
        Polars(),
        error=TypeError,
    )
    refuses(
        "heldout must be a pandas DataFrame", make_frame, table(), heldout=Polars(), error=TypeError
    )
