r"""The server's step of successive convex approximation: averaged quadratics and their minimizer.

A running average of quadratics around the iterates replaces every loss $F_m$:
$\bar F_m(w) = A_m + B_m^\top w + \tau \|w\|^2$ (equations (3), (8), (10), (12) of Ye and Cui; the
vertical (13), (18), (20), (23) are the same). `Surrogate` is that average. `best_response` solves
the server's convex problem, by a formula if it has at most one constraint.

Paper's symbol -> here: $\hat f_{m,1}$ and the pair (B, C) -> a row of `linear`, $\hat f_{m,0}$, A
-> an entry of `constant`, $\kappa_t = 1 - \prod_{s \le t} (1 - \rho^{(s)})$ -> 1 - `left`.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

Scalar = float | Tensor

STEPS = 40  # steps of the interior point method, used for two constraints or more
SHRINK = 0.1  # a step aims at this share of the mean complementarity
LEAST = 1e-20  # the smallest aim, as a share of the first complementarity
CLOSE = 0.99  # a step covers at most this share of the way to the next bound


class Surrogate(NamedTuple):
    """The averaged quadratics of K losses, all with the curvature tau, which is not stored."""

    linear: Float[Tensor, "K d"]
    constant: Float[Tensor, "K"]
    left: Float[Tensor, ""]  # prod (1 - rho), the weight of the zero start

    @classmethod
    def zero(cls, w: Float[Tensor, "d"], losses: int) -> "Surrogate":
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
    ) -> "Surrogate":
        """The average after one round, which adds quadratics of curvature tau around `w`.

        `gradients` and `values` are estimates at `w`, one row for each loss. A value that is not
        needed may be 0. `rho` in (0, 1] is the weight of the new quadratics in the average.
        """
        constant = values - gradients @ w + tau * (w @ w)
        return Surrogate(
            (1 - rho) * self.linear + rho * (gradients - 2 * tau * w),
            (1 - rho) * self.constant + rho * constant,
            (1 - rho) * self.left,
        )

    @property
    def kappa(self) -> Float[Tensor, ""]:
        """The total weight of the quadratics in the average; the zero start has the rest."""
        return 1 - self.left

    def debiased(self) -> "Surrogate":
        """The average of the quadratics alone, whose minimizers are those of (3), (10)."""
        return Surrogate(self.linear / self.kappa, self.constant / self.kappa, self.left)


class Response(NamedTuple):
    """The solution of the server's convex problem."""

    w: Float[Tensor, "d"]  # the minimizer
    nu: Float[Tensor, "M"]  # the constraints' multipliers, in [0, c]
    slack: Float[Tensor, "M"]  # by how much each constraint is violated, nonnegative


def best_response(
    objective: Float[Tensor, "d"],
    linear: Float[Tensor, "M d"],
    constant: Float[Tensor, "M"],
    levels: Float[Tensor, "M"],
    *,
    tau: Scalar,
    penalty: Scalar,
    curvature: Scalar,
) -> Response:
    r"""Solve the problem of SSCA's server (its paper's Problems 2, 5, 7, 10 and (38)) in float64.

    .. math:: \min_{w, s \ge 0} a_0^\top w + \tau_0 \|w\|^2 + c \sum_m s_m \quad\text{s.t.}\quad
        A_m + B_m^\top w + \tau \|w\|^2 \le U_m + s_m .

    The minimizer of the Lagrangian is $w(\nu) = -(a_0 + B^\top \nu) / 2 (\tau_0 + \tau \sum \nu)$,
    where the multipliers solve the dual

    .. math:: \max_{0 \le \nu \le c} \; -\sum_m \nu_m (U_m - A_m)
        - \frac{\|a_0 + B^\top \nu\|^2}{4 (\tau_0 + \tau \sum_m \nu_m)} .

    With one constraint, set $u = \tau_0 + \tau \nu$ and $p = a_0 - (\tau_0 / \tau) B$. The dual's
    derivative is $\frac{1}{4 \tau} (\tau^2 \|p\|^2 / u^2 - \|B\|^2 - 4 \tau (U - A))$ and falls in
    u. So $u = \tau \|p\| / \sqrt{\|B\|^2 + 4 \tau (U - A)}$, clipped to $0 \le \nu \le c$; if the
    root's argument is not positive, $\nu = c$. For $a_0 = 0$, $\tau_0 = 1$ this is Lemma 1.
    With several constraints, Newton's method follows the points with
    $z_m \nu_m = z'_m (c - \nu_m) = \mu$, where $z' - z$ is the slope of the dual, as $\mu$ goes
    to 0; the duality gap is $2 M \mu$. Without constraints w is $-a_0 / 2 \tau_0$.

    Parameters
    ----------
    objective : a_0 of the objective `a_0' w + tau_0 |w|^2`.
    linear, constant, levels : B, A and U of the constraints `A + B w + tau |w|^2 <= U + s`; without
        rows if there are none.
    tau, curvature : the curvatures tau of the constraints and tau_0 of the objective, positive.
    penalty : c, the positive weight of the slacks s.
    """
    dual = _Dual(
        (linear @ linear.T).double(),
        (linear @ objective).double(),
        (objective @ objective).double(),
        (levels - constant).double(),
        tau,
        curvature,
        linear.new_zeros((), dtype=torch.float64) + penalty,
    )
    count = len(constant)
    exact = dual.gap if count == 0 else dual.one() if count == 1 else dual.central()
    nu = exact.to(linear.dtype)
    w = -(objective + nu @ linear) / (2 * (curvature + tau * nu.sum()))
    slack = (constant - levels + linear @ w + tau * (w @ w)).clamp(min=0)
    return Response(w, nu, slack)


class _Dual(NamedTuple):
    """The concave dual of the server's problem, in terms of inner products."""

    gram: Float[Tensor, "M M"]  # B B'
    cross: Float[Tensor, "M"]  # B a_0
    square: Float[Tensor, ""]  # |a_0|^2
    gap: Float[Tensor, "M"]  # U - A
    tau: Scalar
    curvature: Scalar
    top: Float[Tensor, ""]  # c

    def one(self) -> Float[Tensor, "1"]:
        """The solution for one constraint."""
        ratio, b = self.curvature / self.tau, self.gram[0]
        p = self.square - 2 * ratio * self.cross + ratio**2 * b
        den = b + 4 * self.tau * self.gap
        root = (p.clamp(min=0) / torch.where(den > 0, den, 1)).sqrt() - ratio
        return torch.where(den > 0, root.clamp(min=0).minimum(self.top), self.top)

    def slope(self, nu: Float[Tensor, "M"]) -> tuple[Float[Tensor, "M"], Float[Tensor, "M M"]]:
        """The dual's gradient, and its Hessian times -1."""
        u = self.curvature + self.tau * nu.sum()
        seen = self.cross + self.gram @ nu  # B a, for a = a_0 + B' nu = -2 u w
        length = self.square + nu @ (self.cross + seen)  # |a|^2
        pull = self.tau / u
        # inner products of the constraints' gradients B_m + 2 tau w; the Hessian is -these / (2 u)
        inner = self.gram - pull * (seen.unsqueeze(1) + seen) + pull**2 * length
        return -self.gap - seen / (2 * u) + self.tau * length / (4 * u**2), inner / (2 * u)

    def central(self) -> Float[Tensor, "M"]:
        """The end of the central path, by primal-dual steps from an interior point."""
        nu = torch.zeros_like(self.gap) + (self.top / 2).clamp(max=self.curvature / self.tau)
        size = (self.slope(nu)[0].abs() + self.gap.abs()).amax().clamp(min=LEAST)
        low, high = torch.zeros_like(nu) + size, torch.zeros_like(nu) + size
        least = LEAST * size * self.top
        for _ in range(STEPS):
            slope, curve = self.slope(nu)
            room = self.top - nu
            aim = (SHRINK * (nu @ low + room @ high) / (2 * len(nu))).clamp(min=least)
            matrix = curve + torch.diag(low / nu + high / room)
            step = torch.linalg.solve_ex(matrix, slope + aim / nu - aim / room)[0]
            low_step = aim / nu - low - low / nu * step
            high_step = aim / room - high + high / room * step
            far = torch.minimum(_reach(nu, step), _reach(room, -step))
            other = torch.minimum(_reach(low, low_step), _reach(high, high_step))
            moved = (nu + far * step, low + other * low_step, high + other * high_step)
            fine = torch.stack(moved).isfinite().all()  # else the end of the path is reached
            nu, low, high = (
                torch.where(fine, new, old) for new, old in zip(moved, (nu, low, high), strict=True)
            )
        return nu


def _reach(x: Float[Tensor, "M"], step: Float[Tensor, "M"]) -> Tensor:
    """The largest step length, at most 1, that keeps `x` positive."""
    falls = step < 0
    return torch.where(falls, -CLOSE * x / torch.where(falls, step, -1), 1).amin().clamp(max=1)
