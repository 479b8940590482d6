"""SGM: the switching (sub)gradient method with all data in one place.

Polyak, *A general method for solving extremal problems*, 1967. The FedSGM papers plot it as the
centralized curve.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from fedlib.checks import Count, Positive
from fedlib.shapes import PerLoss, Scalar
from fedlib.steps.switching import Hard, Switch, loss_weights
from fedlib.work.centralized import Descent


@dataclass(frozen=True)
class SGM(Descent):
    r"""The switching (sub)gradient method with all data in one place.

        1  E times, each with fresh values and fresh batches:
        2      sigma = switch(g(w) - level - tolerance)
        3      w <- project(w - lr ((1 - sigma) grad f(w) + sigma grad g(w)))

    Run this method on a problem with one client, such as `neyman_pearson(..., clients=1)`. With E
    steps a round, T rounds make the T x E steps of the papers' curves.

    >>> import torch
    >>> from fedlib import SGM, problems, run
    >>> problem = problems.quadratics(torch.ones(1, 2), torch.zeros(1, 2), level=0.5)
    >>> run(SGM(lr=0.1, tolerance=0.05), problem, rounds=20).late("g").round(2)
    array([0.02])

    Parameters
    ----------
    lr : float
        Step size.
    tolerance : float
        epsilon; the method switches where g exceeds `level` by more than this number.
    steps : int
        E, the number of steps in a round. The problem must have one client.
    level : float
        c in the constraint `g <= c`.
    switch : Switch
        Rule for sigma, the share of the constraint in a step: `Hard()` or `Soft(beta)`.
    batch_size : int or None
        Number of rows in the batch for the gradients, drawn anew for every step; None for all.
    value_batch_size : int or None
        Number of rows in the batch for g(w), drawn anew for every step; None for all.

    Differs: no message is sent, so no bits are counted. The reported `sigma` is the last step's.
    """

    lr: Positive
    tolerance: float
    steps: Count = 1
    level: float = 0.0
    switch: Switch = Hard()
    batch_size: Count | None = None
    value_batch_size: Count | None = None

    def weigh(
        self,
        g: Scalar,
        slope: Float[Tensor, "*C"],
    ) -> tuple[Scalar, PerLoss]:
        """Select the objective's gradient or the constraint's, by the switch."""
        sigma = self.switch(g - self.level - self.tolerance)  # 2
        return sigma, loss_weights(1 - sigma, slope * sigma)
