"""The drift of the clients is measured by hand."""

import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib.steps import Hard
from papers.fedsgm.np_workshop.runs import DriftingFedSGM, problem


def test_the_drift_is_the_distance_of_the_local_models_from_their_mean():
    task = problem(3)
    rate = 0.3
    steps = 5
    settings = {"lr": rate, "local_steps": steps, "participants": 10, "tolerance": 0.1}
    method = DriftingFedSGM(**settings, switch=Hard(), error_feedback=False)
    trace = fl.run(method, task, rounds=3, progress=False)
    plain = fl.run(
        fl.FedSGM(**settings, error_feedback=False),
        task,
        rounds=3,
        progress=False,
    )
    assert torch.equal(trace.state.w, plain.state.w)
    features, labels = task.data[:2]
    models = []
    for rows in task.rows:  # g exceeds the level at the start: all clients step on g
        positive = features[rows][labels[rows] == 1]
        u = torch.zeros(task.dim)
        for _ in range(steps):
            shares = 1 - torch.sigmoid(positive @ u)
            u = u + rate * (shares[:, None] * positive).mean(0)
        models.append(u)
    apart = torch.stack(models) - torch.stack(models).mean(0)
    expected = apart.square().sum(1).mean().sqrt()
    assert_close(torch.as_tensor(trace.info["drift"][0, 0]).float(), expected)
