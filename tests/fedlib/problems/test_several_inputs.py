"""Modules of several inputs: the values of the module itself, in every form of clients."""

import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, StackDataset

import fedlib as fl
from fedlib import problems
from fedlib.problems.client_rows import plain_client
from tests.fedlib.problems.own import binary, quiet, square
from tests.helpers.expect import close, refuses
from tests.helpers.randoms import generator

RNG = generator()


class Text(nn.Module):
    """A mean of word vectors over the words that a mask leaves, with an optional shift."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 4)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(4, 1)

    def forward(self, input_ids, shift=None, attention_mask=None):
        mask = attention_mask.unsqueeze(-1)
        vectors = (self.words(input_ids) * mask).sum(1) / mask.sum(1)
        if shift is not None:
            vectors = vectors + shift.unsqueeze(-1)
        return self.out(self.drop(vectors)).squeeze(-1)


TEXTS = []
for size in (9, 5, 7):
    text = {
        "input_ids": torch.randint(0, 50, (size, 6), generator=RNG),
        "attention_mask": torch.randint(0, 2, (size, 6), generator=RNG),
        "labels": torch.arange(size) % 2.0,
    }
    text["attention_mask"][:, 0] = 1
    TEXTS.append(text)
FIRST, SECOND, _ = TEXTS


def make(*clients, module=None, **options):
    module = module or Text()
    return problems.from_clients(clients, module=module, objective=binary, **options)


def loss_of(module, text):
    logits = module(text["input_ids"], attention_mask=text["attention_mask"])
    return binary_cross_entropy_with_logits(logits, text["labels"]).detach()


def pair(text):
    ids = {"attention_mask": text["attention_mask"], "input_ids": text["input_ids"]}
    return ids, text["labels"]


def samples(text):
    ids, labels = pair(text)
    return DataLoader(StackDataset(StackDataset(**ids), labels), batch_size=4)


FORMS = {
    "inner dict": pair,
    "dict": lambda text: text,
    "labels first": lambda text: dict(reversed(text.items())),
    "dataset": lambda text: StackDataset(**text),
    "loader": samples,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_texts_in_every_form_have_the_loss_of_the_module(form):
    module = Text()
    problem = make(*map(form, TEXTS), module=module)
    module.eval()
    losses = torch.stack([loss_of(module, text) for text in TEXTS])
    close(problem.metrics(problem.w0, problem)["f"], losses.mean(), 1e-6)


@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_methods_train_it_and_the_module_takes_the_result(engine):
    torch.manual_seed(0)  # noqa: TID251  torch draws a module's start from its own generator
    module = Text()
    problem = make(FIRST, module=module)
    method = fl.FedAvg(1.0, 3, 1, batch_size=4)
    trace = quiet(method, problem, 40, engine=engine)
    curve = trace.metrics["f"][0]
    assert curve[-1] < 0.8 * curve[0]
    trace.load_into(module)
    module.eval()
    close(loss_of(module, FIRST), torch.tensor(curve[-1]).float(), 1e-6)


AGED = {**FIRST, "age": FIRST["labels"]}
SHORT_MASK = FIRST["attention_mask"][:, :3]
FEW_MASKS = FIRST["attention_mask"][:3]
LARGE_IDS = FIRST["input_ids"] + 2**24 + 1
REFUSED = [
    ("client 0 must have one entry, the target, beside", AGED),
    ("name arguments of the module", ({"ids": LARGE_IDS}, FIRST["labels"])),
    ("inputs of client 1 must have rows of the shapes", {**FIRST, "attention_mask": SHORT_MASK}),
    ("inputs of client 0 must have equally many rows", {**FIRST, "attention_mask": FEW_MASKS}),
    (
        "hold whole numbers that torch.float32 can hold beside the floats",
        {**FIRST, "input_ids": LARGE_IDS, "shift": FIRST["labels"]},
    ),
]


@pytest.mark.parametrize(("words", "client"), REFUSED)
def test_refuses_what_does_not_fit_the_module(words, client):
    refuses(words, make, client, FIRST)


def test_columns_are_no_inputs():
    assert make(AGED, columns=["age"]).data[2].tolist() == FIRST["labels"].tolist()


class Scaled(nn.Module):
    """A linear map times two further inputs."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -2.0]))

    def forward(self, x, mask=None, scale=None):
        z = x @ self.w
        for factor in (mask, scale):
            z = z if factor is None else z * factor
        return z


X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
MASK = torch.tensor([1, 0, 2])
Y = torch.zeros(3)


def scaled(*clients):
    """The loss of each client."""
    problem = problems.from_clients(clients, module=Scaled(), objective=square)
    batches = [plain_client(problem, client) for client in range(len(clients))]
    return [float(problem.losses(problem.w0, batch)) for batch in batches]


def masked(mask):
    return (X, mask), Y


MASKS = [
    (MASK, MASK * 2.0, [5 / 3, 20 / 3]),
    (MASK * 0.5, MASK, [5 / 12, 5 / 3]),
    (MASK.byte(), MASK + 3, [5 / 3, 77 / 3]),
]


@pytest.mark.parametrize(("mask", "next_mask", "losses"), MASKS)
def test_an_input_keeps_its_numbers_whatever_the_first_client_holds(mask, next_mask, losses):
    assert scaled(masked(mask), masked(next_mask)) == pytest.approx(losses)


OTHER_MASKS = [
    (MASK, MASK * 0.5, "torch.int64 alone, as those of the first"),
    (MASK.byte(), MASK + 300, "torch.uint8 alone*to one dtype"),
    (MASK.byte(), MASK - 1, "torch.uint8 alone*to one dtype"),
]


@pytest.mark.parametrize(("mask", "next_mask", "words"), OTHER_MASKS)
def test_an_input_of_whole_numbers_takes_no_others(mask, next_mask, words):
    words = f"inputs of client 1 must hold numbers of {words}"
    refuses(words, scaled, masked(mask), masked(next_mask))


def test_inputs_of_whole_numbers_alone_stay_whole():
    class Sum(nn.Embedding):
        def forward(self, left, right):
            return (super().forward(left) + super().forward(right)).sum((1, 2))

    ids = torch.tensor([[1, 2]])
    clients = [((ids, ids), Y[:1]), ((ids.float(), ids), Y[:1])]
    problem = problems.from_clients(clients, module=Sum(3, 1), objective=square)
    assert problem.data[0].tolist() == [[1, 2, 1, 2]] * 2


NAMED = {"x": X, "mask": MASK, "y": Y}
UNMASKED = {"x": X, "scale": MASK, "y": Y}


@pytest.mark.parametrize("client", [NAMED, masked(MASK)])
def test_inputs_are_for_the_arguments_of_the_first_client(client):
    words = "inputs of client 1 must be for the arguments ['x', 'mask'], as those of the clients"
    refuses(words, scaled, client, UNMASKED)
    turned = dict(reversed(NAMED.items()))
    assert scaled(client, turned) == pytest.approx([5 / 3, 5 / 3])


def test_inputs_may_be_frames():
    frames = (pd.DataFrame(X.numpy()), pd.Series(MASK.numpy()))
    assert scaled((frames, Y)) == pytest.approx([5 / 3])
