"""Kinds of arguments that makers of problems take, for their annotations."""

from typing import Annotated

import torch

from fedlib.checks.annotations import Takes
from fedlib.checks.tensors import float_type, generator, seed

#: A whole number that a generator can be seeded with.
Seed = Annotated[int, Takes(seed)]
#: torch.float32 or torch.float64.
FloatType = Annotated[torch.dtype, Takes(float_type)]
#: A generator on the CPU.
Rng = Annotated[torch.Generator, Takes(generator)]
