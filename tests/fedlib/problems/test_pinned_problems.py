"""Every problem on a few rows: its gradient is its losses', its losses and metrics are pinned.

The pins are what the code gave (`python -m tests.fedlib.problems.test_pinned_problems` writes
them); that these are the papers' values is shown in the other files, by hand and closed forms.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.func import grad

from fedlib import problems
from fedlib.core.describe import describe
from fedlib.core.problem import Batch
from fedlib.core.sampling import seeded
from fedlib.data.loaders import Table
from fedlib.problems.classification import Samples, classifier, linear_model, mlp_model
from fedlib.problems.fairness import Rows
from papers.fedfw.matrices import multi_task_regression
from papers.ssca.network import swish_network
from tests.helpers.randoms import normal

PINS = Path(__file__).with_name("pinned.json")


def rows(count, seed, features=3, classes=2):
    X = normal(count, features, seed=seed)
    return X, (torch.arange(count) * 7 // 3 + seed) % classes


def people(count, seed):
    X, y = rows(count, seed)
    return Rows(X, y.double(), ((torch.arange(count) + seed) % 3 == 0).double())


def digits(count, seed):
    X, y = rows(count, seed, classes=3)
    return Table(X, y, tuple("abc"))


def constrained(model, inputs=torch.float64, **options):
    tables = rows(24, 1, classes=3), rows(9, 2, classes=3)
    size = 1.0 if inputs.is_floating_point else 40.0
    train, test = (Samples((X.abs() * size).to(inputs), y) for X, y in tables)
    real = torch.tensor(options.get("sizes", (6, 6, 6, 6))).unsqueeze(1)
    client_rows = torch.arange(6).where(
        torch.arange(6) < real,
        0,
    ) + 6 * torch.arange(4).unsqueeze(1)
    return classifier(train, test, client_rows, model, dtype=torch.float64, **options)


CASES = {
    "fairness": lambda: problems.fairness(
        people(40, 0), people(20, 1), clients=3, seed=1, hidden=(4, 3)
    ),
    "fairness of clients": lambda: problems.fairness(
        people(40, 0),
        people(20, 1),
        clients=2,
        seed=2,
        hidden=(3,),
        sign="client",
    ),
    "swish_network": lambda: swish_network(
        digits(31, 0),
        digits(12, 1),
        clients=3,
        hidden=4,
        seed=1,
        evaluate=20,
        scale=2.0,
        dtype=torch.float64,
    ),
    "multi_task_regression": lambda: multi_task_regression(
        clients=3,
        rows=4,
        features=5,
        tasks=3,
        rank=2,
        noise=0.2,
        spread=0.3,
        seed=1,
    ),
    "classifier, linear": lambda: constrained(linear_model(3, 3)),
    "classifier, mlp": lambda: constrained(
        mlp_model(3, 4, 3, seeded(1, "split")),
        sizes=(6, 4, 5, 6),
        measured=3,
    ),
    "classifier of other inputs": lambda: constrained(linear_model(3, 3), torch.float32),
    "classifier of bytes": lambda: constrained(
        linear_model(3, 3), torch.uint8, scale=(255.0, 0.1, 0.7)
    ),
    "neyman_pearson": lambda: problems.neyman_pearson(
        *rows(40, 3),
        clients=3,
        seed=1,
        train_fraction=0.7,
        dtype=torch.float64,
    ),
    "quadratics": lambda: problems.quadratics(rows(4, 1)[0], rows(4, 2)[0], level=0.3),
    "pareto": lambda: problems.pareto(rows(24, 1)[0].view(4, 3, 2, 3)),
}


def somewhere(problem):
    """A model that is nowhere special."""
    noise = normal(problem.dim, seed=5)
    return problem.w0 + 0.5 * noise.to(problem.w0.dtype)


def batches(problem):
    """All rows of the clients, one client after the other."""
    clients = problem.all_clients()
    for j in range(problem.num_clients):
        yield Batch(tuple(x[j] for x in clients.data), clients.weight[j])


def described(config):
    """A configuration as a stored run has it; a radius is a sum of singular values, rounded."""
    return json.loads(json.dumps(describe(config)), parse_float=lambda x: float(f"{float(x):.6g}"))


def summary(problem):
    w = somewhere(problem)
    waves = torch.arange(problem.dim).cos().to(w.dtype)
    values = {f"metric {k}": v for k, v in problem.metrics(w, problem).items()}
    values |= {"start": problem.w0 @ waves, "dim": problem.dim, "sizes": sum(problem.sizes)}
    losses = torch.stack([problem.losses(w, batch) for batch in batches(problem)])
    values |= {
        f"loss {k}": column @ torch.arange(1, len(column) + 1).to(w.dtype)
        for k, column in enumerate(losses.T)
    }
    return {k: float(f"{torch.as_tensor(v).double():.10g}") for k, v in values.items()}


@pytest.mark.parametrize("name", CASES)
def test_losses_and_metrics_are_pinned_and_what_a_stored_run_is_keyed_by(name):
    pinned = json.loads(PINS.read_text(encoding="utf-8"))[name]
    problem = CASES[name]()
    assert problem.name == pinned.pop("name")
    assert described(problem.config) == described(pinned.pop("config"))
    exact = problem.w0.dtype == torch.float64 and problem.set is None  # radii are in float32
    near = 1e-8 if exact else 1e-4
    assert summary(problem) == pytest.approx(pinned, rel=near, abs=near / 100)


@pytest.mark.parametrize("name", CASES)
def test_the_closed_form_is_the_gradient_of_the_weighted_losses(name):
    problem = CASES[name]()
    w = somewhere(problem)
    count = problem.num_objectives + problem.num_constraints
    if problem.gradient is None:
        pytest.skip("it has none")
    weights = torch.linspace(0.7, -1.3, count).to(w.dtype)
    for batch in batches(problem):
        slope = grad(lambda v, batch=batch: weights @ problem.losses(v, batch))(w)
        np.testing.assert_allclose(problem.gradient(w, batch, weights), slope, atol=1e-6)


if __name__ == "__main__":
    pinned_values = {}
    for name, make in CASES.items():
        problem = make()
        pinned_values[name] = {
            "name": problem.name,
            "config": describe(problem.config),
            **summary(problem),
        }
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(pins)}" for name, pins in pinned_values.items()
    )
    PINS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
