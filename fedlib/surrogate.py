r"""The server's step of successive convex approximation: averaged quadratics and their minimizer.

Every loss $F_m$ is replaced by a running average of quadratics around the iterates,
$\bar F_m(w) = A_m + B_m^\top w + \tau \|w\|^2$ (equations (3), (8), (10), (12) of Ye and Cui; the
vertical (13), (18), (20), (23) are the same). `Surrogate` is that average, `best_response` solves
the convex problem that it poses to the server, by a formula where there is one constraint or none.

Paper -> here: $\hat f_{m,1}$ and the pair (B, C) -> a row of `linear`, $\hat f_{m,0}$ and A ->
an entry of `constant`, $\kappa_t = 1 - \prod_{s \le t} (1 - \rho^{(s)})$ -> 1 - `left`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Response", "Surrogate", "best_response", "multipliers"]

Scalar = float | Tensor

SWEEPS = 20  # over the coordinates of the dual, where there are two constraints or more
LENGTHS = (0.0, 1.0, 0.3, 0.1, 0.03)  # of Newton's step, the best of which is taken
RIDGE = 1e-13  # on the diagonal of the Hessian, in units of its trace


class Surrogate(NamedTuple):
    """The averaged quadratics of K losses, all with the curvature tau, which is not stored."""

    linear: Tensor  # [K, d]
    constant: Tensor  # [K]
    left: Tensor  # prod (1 - rho), how much of the zero start is left

    @classmethod
    def zero(cls, w: Float[Tensor, "d"], losses: int) -> Surrogate:
        """The start of the average: the zero function for each of K `losses`."""
        return cls(w.new_zeros(losses, w.shape[-1]), w.new_zeros(losses), w.new_ones(()))

    def averaged(
        self,
        w: Float[Tensor, "d"],
        gradients: Float[Tensor, "K d"],
        values: Float[Tensor, "K"],
        *,
        rho: Scalar,
        tau: Scalar,
    ) -> Surrogate:
        """The average after one round, whose quadratics are made around `w`.

        Parameters
        ----------
        w : the iterate.
        gradients, values : estimates at `w`, one row a loss; a value that nobody needs may be 0.
        rho : what the new quadratics count in the average, in (0, 1].
        tau : the quadratics' curvature.
        """
        constant = values - gradients @ w + tau * (w @ w)
        return Surrogate(
            (1 - rho) * self.linear + rho * (gradients - 2 * tau * w),
            (1 - rho) * self.constant + rho * constant,
            (1 - rho) * self.left,
        )

    @property
    def kappa(self) -> Tensor:
        """What the quadratics count in the average together; the zero start counts the rest."""
        return 1 - self.left

    def debiased(self) -> Surrogate:
        """The average of the quadratics alone: the exact minimizers of (3), (10) belong to it."""
        return Surrogate(self.linear / self.kappa, self.constant / self.kappa, self.left)


class Response(NamedTuple):
    """What the server's convex problem gives."""

    w: Tensor  # [d] the minimizer
    nu: Tensor  # [M] the constraints' multipliers, in [0, c]
    slack: Tensor  # [M] by how much each constraint is broken, nonnegative


def best_response(
    objective: Float[Tensor, "d"],
    linear: Float[Tensor, "M d"],
    constant: Float[Tensor, "M"],
    levels: Float[Tensor, "M"],
    *,
    tau: Scalar,
    penalty: Scalar,
    curvature: Scalar,
    sweeps: int = SWEEPS,
) -> Response:
    r"""The exact solution of the server's problem (Problems 2, 5, 7, 10 and (38)).

    .. math:: \min_{w, s \ge 0} a_0^\top w + \tau_0 \|w\|^2 + c \sum_m s_m \quad\text{s.t.}\quad
        A_m + B_m^\top w + \tau \|w\|^2 \le U_m + s_m .

    The minimizer of the Lagrangian is $w(\nu) = -(a_0 + B^\top \nu) / 2 (\tau_0 + \tau \sum \nu)$,
    with the multipliers of `multipliers`. Without constraints it is $-a_0 / 2 \tau_0$, with one
    and $a_0 = 0$, $\tau_0 = 1$ it is Lemma 1.

    Parameters
    ----------
    objective : a_0.
    linear, constant : B and A; no rows where there are no constraints.
    levels : U.
    tau, curvature : tau of the constraints and tau_0 of the objective, positive.
    penalty : c, positive.
    sweeps : as in `multipliers`.
    """
    nu = multipliers(
        linear @ linear.T,
        linear @ objective,
        objective @ objective,
        levels - constant,
        tau=tau,
        penalty=penalty,
        curvature=curvature,
        sweeps=sweeps,
    ).to(linear.dtype)
    w = -(objective + nu @ linear) / (2 * (curvature + tau * nu.sum()))
    slack = (constant - levels + linear @ w + tau * (w @ w)).clamp(min=0)
    return Response(w, nu, slack)


def multipliers(
    gram: Float[Tensor, "M M"],
    cross: Float[Tensor, "M"],
    square: Tensor,
    gap: Float[Tensor, "M"],
    *,
    tau: Scalar,
    penalty: Scalar,
    curvature: Scalar,
    sweeps: int = SWEEPS,
) -> Float[Tensor, "M"]:
    r"""The solution of the dual by coordinate ascent, each step exact; in float64.

    .. math:: \max_{0 \le \nu \le c} \; -\sum_m \nu_m (U_m - A_m)
        - \frac{\|a_0 + B^\top \nu\|^2}{4 (\tau_0 + \tau \sum_m \nu_m)} .

    In one coordinate, with $a' = a_0 + \sum_{j \ne m} \nu_j B_j$,
    $\tau' = \tau_0 + \tau \sum_{j \ne m} \nu_j$, $u = \tau' + \tau \nu_m$,
    $p = a' - (\tau' / \tau) B_m$, the derivative is
    $\frac{1}{4 \tau} (\tau^2 \|p\|^2 / u^2 - \|B_m\|^2 - 4 \tau (U_m - A_m))$, which falls in u. So
    $u = \tau \|p\| / \sqrt{\|B_m\|^2 + 4 \tau (U_m - A_m)}$, clipped to $0 \le \nu_m \le c$, and
    $\nu_m = c$ where the root's argument is not positive. One constraint takes one step; with
    several, a Newton step follows every sweep, where it raises the dual.

    Parameters
    ----------
    gram, cross, square : the inner products B B', B a_0 and a_0' a_0.
    gap : U - A.
    tau, penalty, curvature : as in `best_response`.
    sweeps : over all coordinates, if there are several.
    """
    dual = _Dual(
        gram.double(),
        cross.double(),
        square.double(),
        gap.double(),
        tau,
        curvature,
        gram.new_zeros((), dtype=torch.float64) + penalty,
    )
    nu = torch.zeros_like(dual.gap)
    if len(gap) == 1:
        return dual.ascended(nu, 0)
    for _ in range(sweeps if len(gap) else 0):
        for m in range(len(gap)):
            nu = dual.ascended(nu, m)
        nu = dual.newton(nu)
    return nu


class _Dual(NamedTuple):
    """The concave dual of the server's problem, in inner products."""

    gram: Tensor
    cross: Tensor
    square: Tensor
    gap: Tensor
    tau: Scalar
    curvature: Scalar
    top: Tensor

    def value(self, nu: Float[Tensor, "b M"]) -> Float[Tensor, "b"]:
        """The dual at b points."""
        length = self.square + ((nu @ self.gram + 2 * self.cross) * nu).sum(-1)
        return -nu @ self.gap - length / (4 * (self.curvature + self.tau * nu.sum(-1)))

    def ascended(self, nu: Float[Tensor, "M"], m: int) -> Float[Tensor, "M"]:
        """The best point along coordinate m."""
        here = torch.arange(len(nu), device=nu.device) == m
        rest = torch.where(here, 0, nu)
        ratio = (self.curvature + self.tau * rest.sum()) / self.tau  # tau' / tau
        seen = self.gram @ rest
        length = self.square + rest @ (2 * self.cross + seen)  # |a'|^2
        b = self.gram[m, m]
        p = length - 2 * ratio * (self.cross[m] + seen[m]) + ratio**2 * b
        den = b + 4 * self.tau * self.gap[m]
        root = (p.clamp(min=0) / torch.where(den > 0, den, 1)).sqrt() - ratio
        best = torch.where(den > 0, root.clamp(min=0).minimum(self.top), self.top)
        return torch.where(here, best, rest)

    def newton(self, nu: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
        """The best of some points along the Newton step in the free coordinates, and `nu`."""
        u = self.curvature + self.tau * nu.sum()
        seen = self.cross + self.gram @ nu  # B a, for a = a_0 + B' nu = -2 u w
        length = self.square + nu @ (self.cross + seen)  # |a|^2
        slope = -self.gap - seen / (2 * u) + self.tau * length / (4 * u**2)
        pull = self.tau / u
        # inner products of the constraints' gradients B_m + 2 tau w: the Hessian is -these / 2 u
        inner = self.gram - pull * (seen.unsqueeze(1) + seen) + pull**2 * length
        stuck = ((nu <= 0) & (slope <= 0)) | ((nu >= self.top) & (slope >= 0))
        free = (~stuck).to(nu.dtype)
        inner = inner * free * free.unsqueeze(1)
        ridge = RIDGE * (inner.diagonal().sum() + 1)
        inner = inner + torch.diag(torch.where(stuck, 1, ridge))
        step = 2 * u * torch.linalg.solve_ex(inner, slope * free)[0]
        lengths = torch.tensor(LENGTHS, dtype=nu.dtype, device=nu.device)
        points = (nu + lengths.unsqueeze(1) * step).clamp(min=0).minimum(self.top)
        points = points.nan_to_num(0.0)
        best = self.value(points).argmax()
        taken: Tensor = points.gather(0, best.view(1, 1).expand(1, len(nu))).squeeze(0)
        return taken
