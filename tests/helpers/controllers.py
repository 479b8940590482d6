"""Hand-made policies for cartpole: linear feedback, written into the weights; and its chance."""

import torch

from papers.fedsgm.cartpole.simulator import HIDDEN, SIZES

BALANCE = (0.1, 0.2, 3.5, 0.6)  # gains of position, velocity, angle, angular velocity; holds x = 0
SMALL = 0.01  # the network's units stay where tanh is linear


def linear_policy(gains=BALANCE, at=0.0, push=0.0, log_std=-3.0, dtype=torch.float32):
    """The policy with mean action gains . (x - at, v, angle, spin) + push, as one vector."""
    tensors = [torch.zeros(size, dtype=torch.float64) for size in SIZES]
    A, a, B, _, C, c = tensors
    kx, kv, ka, ks = gains
    scaled_gains = torch.tensor([kx, kv, ka / 5, ks], dtype=torch.float64)
    A.view(HIDDEN, 4)[0] = SMALL * scaled_gains
    a[0] = -SMALL * kx * at
    B.view(HIDDEN, HIDDEN)[0, 0] = 1.0
    C.view(2, HIDDEN)[0, 0] = 1 / SMALL
    c[0] = push
    c[1] = log_std
    return torch.cat(tensors).to(dtype)
