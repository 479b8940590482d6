"""The cart-pole problem as a problem: its clients' budgets, and what a stored run is keyed by."""

import pytest
import torch

from papers.fedsgm.cartpole.simulator import cartpole

DIM, WAVES = 17410, -1.04036832  # of a start: parameters, and their sum with cosines


def test_the_configuration_names_what_was_asked_for():
    problem = cartpole(0, clients=3, environments=2, evaluation=4, budgets=(10.0, 40.0))
    assert problem.name == "cartpole"
    assert set(problem.config) == {"name", "clients", "budgets", "simulator", "evaluation"}
    assert problem.config["name"] == "cartpole"
    assert (problem.config["clients"], problem.config["budgets"]) == (3, [10.0, 40.0])
    assert problem.config["evaluation"] == 4
    assert (problem.num_objectives, problem.num_constraints) == (1, 1)
    assert problem.sizes == (1, 1, 1)
    assert problem.rows.tolist() == [[0], [1], [2]]


def test_budgets_go_evenly_from_the_first_to_the_last_and_one_client_has_the_middle():
    several = cartpole(0, clients=3, evaluation=1, budgets=(10.0, 40.0))
    assert several.data[0].tolist() == [10.0, 25.0, 40.0]
    assert cartpole(0, clients=1, evaluation=1, budgets=(10.0, 40.0)).data[0].tolist() == [25.0]


def test_the_start_is_pinned():
    w0 = cartpole(3, clients=1, evaluation=1).w0
    waves = torch.arange(len(w0)).cos() @ w0
    assert (len(w0), float(waves)) == (DIM, pytest.approx(WAVES, rel=1e-5))
