"""Clients' rows in every form that people's data have: the same problem, or one sentence."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from torch import nn
from torch.masked import masked_tensor
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
from tests.fedlib.problems.own import square
from tests.helpers.expect import refuses
from tests.helpers.randoms import generator

RNG = generator()
X = torch.randint(-7, 8, (12, 3), generator=RNG).float()
Y = torch.randn(12, generator=RNG)
WHOLE = TensorDataset(X, Y)
ERRORS = (ValueError, TypeError)


def make(*clients, module=None, **options):
    return problems.from_clients(
        clients,
        module=module or nn.Linear(3, 1),
        objective=square,
        **options,
    )


class Stream(IterableDataset):
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


class Computed(Dataset):
    """Four samples, each of which a function makes of its number; it has no length."""

    def __init__(self, sample):
        self.sample = sample

    def __getitem__(self, index):
        if index == 4:
            raise IndexError
        return self.sample(index)


class Endless(SequentialSampler):
    def __iter__(self):
        while True:
            yield 0


class Doubled(DataLoader):
    """A loader that makes its own batches."""

    def __iter__(self):
        for x, y in super().__iter__():
            yield 2 * x, y


FIVE = Stream(list(WHOLE)[:5])
PAIRS = BatchSampler(range(7), 3, drop_last=True)
LAST = WeightedRandomSampler([0] * 11 + [1], 2)
TWICE = RandomSampler([3], replacement=True, num_samples=2)
SOURCES = [
    (DataLoader(WHOLE, 5, shuffle=True), range(12)),
    (DataLoader(WHOLE, sampler=SubsetRandomSampler([9, 4, 7])), (4, 7, 9)),
    (DataLoader(WHOLE, sampler=LAST), (11, 11)),
    (DataLoader(Subset(WHOLE, [3]), sampler=TWICE), (3, 3)),
    (DataLoader(WHOLE, 5, drop_last=True), range(10)),
    (DataLoader(WHOLE, batch_sampler=[[0, 3], [3, 5]]), (0, 3, 3, 5)),
    (DataLoader(WHOLE, batch_size=None, sampler=PAIRS), range(6)),
    (DataLoader(WHOLE, batch_size=None), range(12)),
    (DataLoader(FIVE, 2), range(5)),
    (DataLoader(FIVE, batch_size=None), range(5)),
    (FIVE, range(5)),
    (Computed(WHOLE.__getitem__), range(4)),
]


@pytest.mark.parametrize(("source", "positions"), SOURCES)
def test_a_client_holds_the_samples_of_its_loader(source, positions):
    problem = make(source, (X, Y))
    chosen = list(positions)
    count = len(chosen)
    assert problem.sizes == (count, 12)
    assert torch.equal(problem.data[0][:count], X[chosen])
    assert torch.equal(problem.data[1][:count], Y[chosen])


def test_a_loader_that_makes_its_own_batches_is_asked_for_them():
    problem = make(Doubled(WHOLE, 5))
    assert torch.equal(problem.data[0], 2 * X)


def test_heldout_rows_may_be_a_stream_and_have_the_dtypes_of_the_clients():
    assert torch.equal(make((X, Y), heldout=FIVE).heldout[0], X[:5])
    integers = (X.long(), Y.long())
    inputs, target = make((X, Y), heldout=integers).heldout
    assert torch.equal(inputs, X)
    assert target.dtype == torch.float32
    refuses("heldout must have rows, got 0", make, (X, Y), heldout=Subset(WHOLE, []))


def test_a_sampler_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr("fedlib.problems.datasets.MOST_SAMPLES", 100)
    loader = DataLoader(WHOLE, sampler=Endless(WHOLE))
    refuses("the sampler of client 0 must come to an end", make, loader)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


class Sub(torch.Tensor):
    pass


NUMPY = X.numpy()
RECORD = np.zeros(NUMPY.shape, dtype=[("skip", "i1"), ("value", "f4")])
RECORD["value"] = NUMPY
FORMS = {
    "reversed": NUMPY[::-1].copy()[::-1],
    "read-only": read_only(NUMPY),
    "the other byte order": NUMPY.astype(NUMPY.dtype.newbyteorder()),
    "a field of records": RECORD["value"],
    "objects that are numbers": NUMPY.astype(object),
    "masked without gaps": np.ma.masked_array(NUMPY, mask=False),
    "long floats": NUMPY.astype(np.longdouble),
    "a reversed frame": pd.DataFrame(NUMPY[::-1])[::-1],
    "lists": NUMPY.tolist(),
    "a list of tensors": list(X),
    "a parameter": nn.Parameter(X),
    "a subclass": X.as_subclass(Sub),
    "eight bits": X.to(torch.float8_e4m3fn),
    "a negated view": torch.complex(X, -X).conj().imag,
}


@pytest.mark.parametrize("inputs", FORMS.values(), ids=FORMS)
def test_arrays_in_every_form_are_the_same_rows(inputs):
    stored = make((inputs, Y)).data[0]
    assert type(stored) is torch.Tensor
    assert torch.equal(stored, X)
    assert not stored.requires_grad


def test_a_series_is_read_by_place_and_not_by_label():
    y = pd.Series(Y.numpy(), index=range(11, -1, -1))
    assert torch.equal(make((X, y)).data[1], Y)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "uint64", "int32"])
def test_whole_numbers_stay_whole_and_truth_values_become_floats(dtype):
    target = (np.arange(12) % 2).astype(dtype)
    for values in (target, torch.from_numpy(target)):
        stored = make((X, values)).data[1]
        assert stored.tolist() == target.tolist()
        assert stored.is_floating_point() == (dtype == "bool")


def test_dicts_are_read_by_their_names():
    target = X[:, :1].clone()
    turned = {"y": target, "x": X}
    problem = make({"x": X, "y": target}, turned)
    assert torch.equal(problem.data[0], X.repeat(2, 1))
    assert torch.equal(problem.data[1], target.repeat(2, 1))
    words = "client 1 must have the entries ['x', 'y'], as the clients before, got ['x', 'z']"
    refuses(words, make, {"x": X, "y": Y}, {"x": X, "z": Y})


@pytest.mark.parametrize("position", [0, 1])
def test_whole_numbers_beside_the_floats_of_others_stay_what_they_are(position):
    """2^24 + 1 is the first whole number that a float32 cannot hold."""
    client = [X, Y]
    client[position] = torch.full_like(client[position], 2**24 + 1, dtype=torch.int64)
    words = "of client 1 must hold whole numbers that torch.float32 can hold beside other"
    refuses(words, make, (X, Y), client)
    double = make((X, Y), client, module=nn.Linear(3, 1).double())
    assert (double.data[position][12:] == 2**24 + 1).all()
    client[position] = torch.ones_like(client[position])
    assert make((X, Y), client).data[position].dtype == torch.float32


WIDTHS = [(torch.ones(2, k), torch.ones(2)) for k in (1, 2)]
CLIENTS = [
    ("have rows, got 0", Stream([])),
    (
        "have samples that can be stacked, but failed: stack expects",
        Computed(lambda k: (torch.ones(k + 2), 1.0)),
    ),
    ("have samples that can be stacked", Computed(lambda _: (object(), 1.0))),
    ("have samples that can be stacked", DataLoader(Stream(WIDTHS), batch_size=None)),
    ("give its samples, but failed: division", Computed(lambda k: 1 / (k - 2))),
    ("be 2 tensors: inputs, target, got 3; name further ones", (X, Y, Y)),
    ("be 2 tensors: inputs, target, got 1", (X,)),
    ("be a tuple (inputs, target), a dict, a Dataset or a DataLoader, got", X),
    ("be a tuple*got <class *write Computed(...)", Computed),
    ("hold equally many rows", (X, Y[:5])),
    ("hold equally many rows in all its tensors, shaped as those", (X[:, :2], Y)),
    ("have rows", (X[:0], Y[:0])),
]


@pytest.mark.parametrize(("words", "client"), CLIENTS)
def test_a_client_of_another_form_is_one_sentence(words, client):
    refuses(f"from_clients: client *1* must {words}", make, (X, Y), client, error=ERRORS)


def test_columns_weights_and_no_clients():
    labelled = (X, {"label": Y})
    refuses("target of client 0 must hold real numbers (a dict)", make, labelled, error=TypeError)
    four = (X, Y, Y, Y)
    refuses("columns must name each column once, got ['z']", make, four, columns=["z", "z"])
    refuses(
        "weights[1] must be positive, got 0",
        make,
        (X, Y),
        (X, Y),
        weights=[1, 0],
    )
    refuses("the problem must have a client", make)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_masked_tensors_are_refused_and_quantized_ones_are_read():
    masked = masked_tensor(X, X > 0)
    refuses("inputs of client 0 must have no masked entries", make, (masked, Y))
    quantized = torch.quantize_per_tensor(X, 0.5, 0, torch.qint8)
    assert torch.equal(make((quantized, Y)).data[0], X)


REFUSED = [
    ("have no masked entries, got", np.ma.masked_array(NUMPY, mask=NUMPY > 0)),
    ("hold real numbers, got complex64 [12, 3]; pass the real", X + 1j),
    ("hold real numbers (complex64)*pass the real", NUMPY + 1j),
    ("hold real numbers (datetime64[D])*days since", np.zeros((12, 3), "M8[D]")),
    ("hold real numbers (<U1)*encode", np.full((12, 3), "a")),
    ("numbers (object)*drop or impute the rows", [[1.0, None, 2.0]] * 12),
    ("real numbers*pass list(...)", iter(X)),
    ("hold real numbers (setting", [[1.0], [1.0, 2.0]]),
    ("an array of one kind", RECORD),
    ("hold real numbers (object)*call .toarray()", csr_array(NUMPY)),
    ("be dense*call .to_dense()", X.to_sparse()),
    ("hold its own values", X.to("meta")),
    ("have a row a sample, got 'a single number'", torch.tensor(1.0)),
    ("hold whole numbers below 2^63", np.full((12, 3), 2**64 - 1, np.uint64)),
    ("hold numbers that torch.float32 can hold", X.double() * 1e300),
    ("be finite, got 36 of 36 entries", X / 0),
]


@pytest.mark.parametrize(("words", "inputs"), REFUSED)
def test_what_is_no_real_number_is_one_sentence_with_the_client(words, inputs):
    words = f"from_clients: inputs of client 1 must *{words}"
    refuses(words, make, (X, Y), (inputs, Y), error=ERRORS)


def test_large_numbers_fit_a_module_of_doubles():
    double = nn.Linear(3, 1).double()
    assert make((X.double() * 1e100, Y), module=double).data[0].dtype == torch.float64
