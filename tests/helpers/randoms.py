"""Random tensors that are the same in every run."""

import torch


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def numbers(*shape, seed=0):
    """Normal, in single precision."""
    return torch.randn(*shape, generator=generator(seed))


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def uniform(*shape, seed=0):
    return torch.rand(*shape, generator=generator(seed), dtype=torch.float64)
