"""Problems of one's own: from frames and from tensors, and a sentence for every common mistake."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, softplus

import fedlib as fl
from fedlib import problems
from fedlib.problems import ClientRows

SIZES = {"a": 7, "b": 4, "c": 5}


@pytest.fixture
def frame():
    """Three clients with unequal numbers of rows, both classes everywhere."""
    rng = np.random.default_rng(0)
    hospital = [name for name, size in SIZES.items() for _ in range(size)]
    table = pd.DataFrame(rng.normal(size=(16, 2)), columns=["age", "dose"])
    return table.assign(hospital=hospital, ill=(np.arange(16) % 2).astype(float))


def net(inputs=2):
    layer = nn.Linear(inputs, 1).double()
    with torch.no_grad():
        layer.weight.fill_(0.3)
        layer.bias.fill_(-0.1)
    return layer


def each_loss(rows):
    logits = rows.output.squeeze(-1)
    return binary_cross_entropy_with_logits(logits, rows.target, reduction="none")


def healthy(rows):
    return rows.mean(each_loss(rows), where=rows.target == 0)


def missed(rows):
    return rows.mean(each_loss(rows), where=rows.target == 1)


def make(frame, **changes):
    options = {
        "client": "hospital",
        "target": "ill",
        "module": net(),
        "objective": healthy,
        "constraint": missed,
        **changes,
    }
    return problems.from_frame(frame, **options)


def by_hand(frame, ill):
    """The mean over hospitals of the mean loss of one class."""
    x, y = (torch.tensor(frame[c].to_numpy()) for c in (["age", "dose"], "ill"))
    z = 0.3 * x.sum(1) - 0.1
    with_losses = frame.assign(loss=(softplus(z) - y * z).numpy())
    return with_losses[with_losses.ill == ill].groupby("hospital").loss.mean().mean()


def test_values_are_those_by_hand_and_padding_does_not_count(frame):
    problem = make(frame)
    assert (problem.sizes, problem.num_constraints, problem.dim) == ((7, 4, 5), 1, 3)
    f, g = problem.mean_losses(problem.w0)
    assert f.item() == pytest.approx(by_hand(frame, 0), abs=1e-9)  # float32 entries of the model
    assert g.item() == pytest.approx(by_hand(frame, 1), abs=1e-9)
    metrics = problem.metrics(problem.w0, problem)
    torch.testing.assert_close(torch.stack([metrics["f"], metrics["g"]]), torch.stack([f, g]))


def test_measures_are_of_the_rows_held_out(frame):
    measures = {
        "share": lambda rows: rows.mean(rows.target),
        "dose": lambda rows: rows.mean(rows.columns["dose"]),
    }
    options = {"measures": measures, "columns": ["dose"], "module": net(1)}
    inside = make(frame, **options)
    heldout = frame[:3].drop(columns="hospital").assign(ill=1.0, dose=[1.0, 2.0, 6.0])
    outside = make(frame, heldout=heldout, **options)
    metrics = inside.metrics(inside.w0, inside)
    assert metrics["share"].item() == pytest.approx(frame.groupby("hospital").ill.mean().mean())
    assert metrics["dose"].item() == pytest.approx(frame.groupby("hospital").dose.mean().mean())
    metrics = outside.metrics(outside.w0, outside)
    assert (metrics["share"].item(), metrics["dose"].item()) == (1.0, 3.0)


def test_several_objectives_and_constraints_have_names(frame):
    problem = make(frame, objective=[healthy, missed], constraint=[missed, healthy])
    metrics = problem.metrics(problem.w0, problem)
    assert (problem.num_objectives, problem.num_constraints) == (2, 2)
    assert metrics["f"] == (metrics["f_1"] + metrics["f_2"]) / 2
    assert metrics["g"] == max(metrics["g_1"], metrics["g_2"])
    trace = fl.run(
        fl.FedCMOO(0.1, 1, 2),
        make(frame, objective=[healthy, missed], constraint=()),
        rounds=2,
        progress=False,
    )
    assert set(trace.metrics) == {"f", "f_1", "f_2"}


def test_tensors_of_any_shape_with_classes():
    rng = torch.Generator().manual_seed(0)
    clients = [
        (torch.randn(m, 1, 4, 4, generator=rng), torch.arange(m) % 3, torch.ones(m)) for m in (6, 4)
    ]
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3))

    def loss(rows):
        assert rows.columns["age"].shape == rows.target.shape
        return rows.mean(cross_entropy(rows.output, rows.target, reduction="none"))

    problem = problems.from_clients(clients, module=module, objective=loss, columns=["age"])
    trace = fl.run(fl.FedAvg(0.1, 2, 2), problem, rounds=5, progress=False)
    assert trace.metrics["f"][0, -1] < trace.metrics["f"][0, 0]


def test_the_configuration_knows_other_data_and_another_module(frame):
    config = make(frame).config
    assert (config["objective"], config["constraint"]) == (["healthy"], ["missed"])
    assert config["module"] == "Linear(in_features=2, out_features=1, bias=True)"
    assert config["data"] == "4fce0a1b9077cf52"
    assert config == make(frame).config
    changed = frame.assign(dose=frame.dose + 1e-9)
    assert make(changed).config["data"] != config["data"]
    assert make(frame, module=nn.Sequential(net())).config["module"] != config["module"]


def test_the_mean_of_a_condition_that_nobody_meets_is_0():
    rows = ClientRows(torch.ones(2), torch.ones(2), {}, torch.tensor([0.5, 0.5]))
    assert rows.mean(rows.output, where=rows.target == 0).item() == 0
    assert rows.mean(rows.target == 1).item() == 1


def no_mean(rows):
    return each_loss(rows)


def plain_mean(rows):
    return each_loss(rows).mean()


def unsqueezed(rows):
    return rows.mean(rows.output)


def branching(rows):
    return missed(rows) if rows.target.sum() > 2 else healthy(rows)


def a_float(rows):
    return 0.5


def logarithm(rows):
    return rows.mean(rows.target.log())


def a_typo(rows):
    return rows.mean(rows.outputs)


MISTAKES = {
    "missing column": ({"client": "clinic"}, r"must hold the column 'clinic', got \['age'"),
    "a misspelt feature": ({"features": ["age", "dosis"]}, "column 'dosis', .*nearest: 'dose'"),
    "a text column": ({"client": "age", "features": ["hospital"]}, "'hospital' must hold numbers"),
    "two uses": (
        {"features": ["hospital"]},
        r"must name each column once, for one purpose, got \['hospital'\]",
    ),
    "no features": ({"features": []}, "features must hold at least one column"),
    "wrong width": (
        {"module": net(3)},
        r"of shape \[7, 2\], must work on rows, but failed: mat1",
    ),
    "dropout": ({"module": nn.Sequential(net(), nn.AlphaDropout(0.5))}, "must be deterministic"),
    "a vector": ({"constraint": no_mean}, r"constraint 'no_mean' must return one number.*\[7\]"),
    "padding": (
        {"constraint": plain_mean},
        "'plain_mean' must not count padding rows, got .* without",
    ),
    "a spare axis": (
        {"objective": unsqueezed},
        r"one number a row, .*, got float64 \[7, 1\]",
    ),
    "branching": (
        {"constraint": branching},
        "'branching' must not read values at `return missed.*torch.where",
    ),
    "no tensor": ({"objective": a_float}, "must return one number, .*got 0.5"),
    "infinite": ({"objective": logarithm}, "must be finite where methods start.*on client 0"),
    "a typo": ({"objective": a_typo}, "objective 'a_typo' must work .* no attribute 'outputs'"),
    "a measure": ({"measures": {"loss": no_mean}}, "measure 'loss' must return one number"),
    "no objective": ({"objective": ()}, "the problem must have an objective, got 0"),
}


@pytest.mark.parametrize(("changes", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence(frame, changes, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        make(frame, **changes)
    text = str(caught.value)
    assert text.startswith(("from_frame: ", "ravel: "))
    assert text.endswith(".")
    assert "\n" not in text


def test_a_category_without_rows_is_a_client_without_rows(frame):
    category = frame.astype({"hospital": "category"})
    with pytest.raises(ValueError, match="client 'b' must have rows, got 0"):
        make(category[category.hospital != "b"])


def test_clients_that_do_not_fit():
    pair = torch.ones(3, 2), torch.ones(3)
    options = {"module": nn.Linear(2, 1), "objective": lambda rows: rows.mean(rows.target)}
    for clients, sentence in (
        ([pair, pair[:1]], "client 1 must be 2 tensors: inputs, target, got 1"),
        ([(pair[0], torch.ones(4))], "client 0 must hold equally many rows"),
        ([pair, (pair[0][:0], pair[1][:0])], "client 1 must have rows"),
        ([(pair[0] / 0, pair[1])], "inputs of client 0 must be finite"),
        ([], "must have a client"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"from_clients: .*{sentence}"):
            problems.from_clients(clients, **options)
