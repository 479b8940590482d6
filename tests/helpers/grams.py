"""Gram matrices, hard ones among them, and what weights made from them must be."""

import pytest
import torch


def gradients(count, dim=None, seed=0, scales=False):
    rng = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, dim or 2 * count, generator=rng, dtype=torch.float64)
    if not scales:
        return rows
    uniform = torch.rand(count, 1, generator=rng, dtype=torch.float64)
    exponent = 6 * uniform - 3
    return rows * 10**exponent


def gram(*arguments, **options):
    rows = gradients(*arguments, **options)
    return rows @ rows.T


#: rank one, zero, equal gradients, opposite gradients, indefinite
HARD = {
    "rank one": gram(4, dim=1),
    "zero": torch.zeros(4, 4, dtype=torch.float64),
    "equal": torch.ones(4, 4, dtype=torch.float64),
    "opposite": torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64),
    "indefinite": gram(4) - 6 * torch.eye(4, dtype=torch.float64),
    "negative": -torch.ones(4, 4, dtype=torch.float64) - torch.eye(4, dtype=torch.float64),
    "scales": gram(5, scales=True),
}


def assert_on_simplex(w):
    assert (w >= 0).all()
    assert float(w.sum()) == pytest.approx(1, abs=1e-9)
