"""Fixtures that many tests share."""

import pytest
import torch
from problems import np_problem


@pytest.fixture(scope="session")
def problem():
    """20 clients, 80 % of breast cancer, float64."""
    return np_problem()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)
