"""Generated classification: Gaussian inputs, labels from a random linear map.

The generator that Dadras et al. (FedFW, ECML PKDD 2024) take from earlier work (pFedMe; first in
Li et al., *Federated Optimization in Heterogeneous Networks*), with the settings of their code.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Rng

SPREAD = 0.5  # alpha = beta in the source: the standard deviation of the clients' centres
LEAST, TIMES = 50, 5  # a client has TIMES * (LEAST + floor(log-normal)) rows
LOG_MEAN, LOG_DEVIATION = 4.0, 2.0
DECAY = 1.2  # input j has variance j^-DECAY


class Generated(NamedTuple):
    """Rows of all clients one after another, and how many each has."""

    X: Float[Tensor, "R p"]
    y: Int[Tensor, " R"]
    sizes: tuple[int, ...]


def gaussian_labels(
    clients: Count,
    rng: Rng,
    *,
    classes: Count = 10,
    features: Count = 60,
    samples: Count | None = None,
    most: Count | None = None,
    own_map: bool = False,
) -> Generated:
    """Inputs x ~ N(v_u, diag(j^-1.2)) of client u, labels arg max(W'x + b).

    W and b are standard normal and shared, v_u = B_u (1, ..., 1) with B_u ~ N(0, 0.5^2). With
    `own_map` every client has a map of its own, N(mu_u, 1) with mu_u ~ N(0, 0.5^2), and a centre
    v_u ~ N(B_u, 1): the heterogeneous branch of the generator.

    Args:
        clients: N.
        rng: draws everything.
        classes, features: of the generator.
        samples: rows of every client; None: 5 (50 + floor(log-normal(4, 2))), very unequal.
        most: no client has more rows than this.
        own_map: see above.

    Raises:
        ValueError, TypeError: a count that is no whole number from 1 on.
    """
    checks.arguments(gaussian_labels, locals())
    counts = {"clients": clients, "classes": classes, "features": features}
    counts |= {k: v for k, v in (("samples", samples), ("most", most)) if v is not None}
    for name, value in counts.items():
        checks.count("gaussian_labels", name, value)
    log = LOG_MEAN + LOG_DEVIATION * torch.randn(clients, generator=rng, dtype=torch.float64)
    drawn = [TIMES * (LEAST + int(z)) for z in log.exp()]
    wanted = drawn if samples is None else [samples] * clients
    sizes = wanted if most is None else [min(n, most) for n in wanted]
    centre = SPREAD * torch.randn(clients, generator=rng)
    deviation = torch.arange(1, features + 1, dtype=torch.float32) ** (-DECAY / 2)
    W, b = torch.randn(features, classes, generator=rng), torch.randn(classes, generator=rng)
    X, y = [], []
    for u, n in enumerate(sizes):
        v = centre[u].expand(features)
        if own_map:
            mean = SPREAD * torch.randn((), generator=rng)
            W = mean + torch.randn(features, classes, generator=rng)
            b = mean + torch.randn(classes, generator=rng)
            v = v + torch.randn(features, generator=rng)
        X.append(v + deviation * torch.randn(n, features, generator=rng))
        y.append((X[-1] @ W + b).argmax(1))
    return Generated(torch.cat(X), torch.cat(y), tuple(sizes))
