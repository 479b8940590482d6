"""Modules of several inputs: the values of the module itself, in every form of clients."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, Dataset

import fedlib as fl
from fedlib import problems
from fedlib.problems.client_rows import plain_client
from tests.helpers.expect import close, refuses

SIZES = (9, 5, 7)


class Text(nn.Module):
    """A mean of word vectors over the words that a mask leaves, with an optional shift."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 4)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(4, 1)

    def forward(self, input_ids, shift=None, attention_mask=None):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        mask = attention_mask.unsqueeze(-1)
        vectors = (self.words(input_ids) * mask).sum(1) / mask.sum(1)
        if shift is not None:
            vectors = vectors + shift.unsqueeze(-1)
        return self.out(self.drop(vectors))


class Pair(nn.Module):
    """A linear map of a picture and a vector."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4 * 4 + 3, 1)

    def forward(self, picture, vector):
        return self.out(torch.cat([picture.flatten(1), vector], 1))


def loss(rows):
    values = binary_cross_entropy_with_logits(
        rows.output.squeeze(-1), rows.target, reduction="none"
    )
    return rows.mean(values)


def texts(seed=0):
    rng = torch.Generator().manual_seed(seed)
    for size in SIZES:
        ids = torch.randint(0, 50, (size, 6), generator=rng)
        lengths = torch.randint(1, 7, (size, 1), generator=rng)
        mask = (torch.arange(6) < lengths).long()
        yield ids, mask, (torch.arange(size) % 2).float()


def seeded_module(module_type):
    torch.manual_seed(0)  # noqa: TID251  torch draws a module's start from its own generator
    return module_type()


class Samples(Dataset):
    """Rows of a client as samples ((ids, mask), target) or as dicts."""

    def __init__(self, rows, form):
        self.rows = rows
        self.form = form

    def __len__(self):
        return len(self.rows[0])

    def __getitem__(self, i):
        ids, mask, target = (x[i] for x in self.rows)
        if self.form == "dict":
            return {"labels": target, "attention_mask": mask, "input_ids": ids}
        return {"input_ids": ids, "attention_mask": mask}, target


def in_form(form):
    for ids, mask, target in texts():
        if form == "inner dict":
            yield {"attention_mask": mask, "input_ids": ids}, target
        elif form == "dict":
            yield {"input_ids": ids, "attention_mask": mask, "labels": target}
        elif form == "labels first":
            yield {"labels": target.numpy(), "attention_mask": mask.numpy(), "input_ids": ids}
        elif form == "dataset":
            yield Samples((ids, mask, target), "dict")
        else:
            yield DataLoader(Samples((ids, mask, target), "pairs"), batch_size=4)


@pytest.mark.parametrize("form", ["inner dict", "dict", "labels first", "dataset", "loader"])
def test_texts_in_every_form_have_the_loss_of_the_module(form):
    module = seeded_module(Text)
    problem = problems.from_clients([*in_form(form)], module=module, objective=loss)
    module.eval()
    by_hand = []
    for ids, mask, target in texts():
        logits = module(ids, attention_mask=mask).squeeze(-1)
        by_hand.append(binary_cross_entropy_with_logits(logits, target))
    value = problem.metrics(problem.w0, problem)["f"]
    close(value, torch.stack(by_hand).mean().detach(), 1e-6)


@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_methods_train_it_and_the_module_takes_the_result(engine):
    module = seeded_module(Text)
    clients = [*in_form("dict")]
    problem = problems.from_clients(clients, module=module, objective=loss, heldout=clients[0])
    method = fl.FedAvg(1.0, 3, 3, batch_size=4)
    trace = fl.run(method, problem, rounds=40, progress=False, engine=engine)
    assert trace.metrics["f"][0, -1] < 0.8 * trace.metrics["f"][0, 0]
    trace.load_into(module)
    module.eval()
    ids, mask, target = next(iter(texts()))
    logits = module(ids, attention_mask=mask).squeeze(-1)
    rows = problems.from_clients([clients[0]], module=module, objective=loss)
    value = rows.metrics(rows.w0, rows)["f"]
    close(value, binary_cross_entropy_with_logits(logits, target).detach(), 1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pictures_and_vectors_by_position(dtype):
    rng = np.random.default_rng(0)
    clients = []
    for size in SIZES:
        picture = rng.integers(0, 255, (size, 4, 4)).astype(dtype)
        vector = rng.normal(size=(size, 3)).astype(np.float32)
        clients.append(((picture, vector), np.arange(size) % 2.0, np.arange(size) % 3))
    module = seeded_module(Pair)
    problem = problems.from_clients(clients, module=module, objective=loss, columns=["age"])
    by_hand = []
    for (picture, vector), target, _ in clients:
        logits = module(torch.tensor(picture), torch.tensor(vector)).squeeze(-1)
        by_hand.append(binary_cross_entropy_with_logits(logits, torch.tensor(target).float()))
    close(problem.metrics(problem.w0, problem)["f"], torch.stack(by_hand).mean().detach(), 1e-3)


def test_refuses_what_does_not_fit_the_module():
    ids, mask, target = next(iter(texts()))
    module = seeded_module(Text)

    def make(*clients, **options):
        return problems.from_clients([*clients], module=module, objective=loss, **options)

    client = {"input_ids": ids, "attention_mask": mask, "labels": target}
    refuses("client 0 must have one entry, the target, beside", make, {**client, "age": target})
    make({**client, "age": target}, columns=["age"])
    refuses("name arguments of the module", make, ({"ids": ids, "attention_mask": mask}, target))
    shorter = {**client, "attention_mask": mask[:, :3]}
    refuses("inputs of client 1 must have rows of the shapes", make, client, shorter)
    incomplete = {**client, "attention_mask": mask[:3]}
    refuses("inputs of client 1 must have equally many rows", make, client, incomplete)
    large = {**client, "input_ids": ids + 2**24 + 1, "shift": target}
    refuses("hold whole numbers that torch.float32 can hold beside the floats", make, large)


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


def square(rows):
    return rows.mean((rows.output - rows.target) ** 2)


def scaled(*clients):
    problem = problems.from_clients([*clients], module=Scaled(), objective=square)
    batches = [plain_client(problem, client) for client in range(len(clients))]
    return [float(problem.losses(problem.w0, batch)) for batch in batches]


def test_an_input_keeps_its_numbers_whatever_the_first_client_holds():
    assert scaled(((X, MASK), Y), ((X, MASK * 2.0), Y)) == pytest.approx([5 / 3, 20 / 3])
    assert scaled(((X, MASK * 0.5), Y), ((X, MASK), Y)) == pytest.approx([5 / 12, 5 / 3])
    words = "inputs of client 1 must hold numbers of torch.int64 alone, as those of the first"
    refuses(words, scaled, ((X, MASK), Y), ((X, MASK * 0.5), Y))
    ids = torch.tensor([[1, 2]])
    words = nn.Embedding(3, 1)
    packed = [((ids, ids), Y[:1]), ((ids.float(), ids), Y[:1])]

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = words

        def forward(self, left, right):
            return (self.words(left) + self.words(right)).sum((1, 2))

    problem = problems.from_clients(packed, module=Sum(), objective=square)
    assert problem.data[0].tolist() == [[1, 2, 1, 2]] * 2
    words = "inputs of client 1 must hold numbers of torch.uint8 alone*to one dtype"
    for mask in (MASK + 300, MASK - 1):
        refuses(words, scaled, ((X, MASK.byte()), Y), ((X, mask), Y))
    assert scaled(((X, MASK.byte()), Y), ((X, MASK + 3), Y)) == pytest.approx([5 / 3, 77 / 3])


def test_inputs_are_for_the_arguments_of_the_first_client():
    words = "inputs of client 1 must be for the arguments ['x', 'mask'], as those of the clients"
    wrong = {"x": X, "scale": MASK, "y": Y}
    refuses(words, scaled, {"x": X, "mask": MASK, "y": Y}, wrong)
    refuses(words, scaled, ((X, MASK), Y), wrong)
    turned = {"y": Y, "mask": MASK, "x": X}
    assert scaled(((X, MASK), Y), turned) == pytest.approx([5 / 3, 5 / 3])


def test_frames_and_inputs_of_several_lengths():
    frames = (pd.DataFrame(X.numpy()), pd.Series(MASK.numpy()))
    assert scaled((frames, Y)) == pytest.approx([5 / 3])
    refuses(
        "inputs of client 0 must have equally many rows, got [2, 3]", scaled, ((X, MASK[:2]), Y)
    )
