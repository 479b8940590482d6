"""The rules that judge SSCA's claims about norm, cost and Theorem 5; each can fail."""

from __future__ import annotations

from fedlib.claims import Numbers, Outcome, judge
from fedlib.studies.ssca_common import SPLITS

__all__ = ["FALLING", "LEVELS", "NEAR", "RIDGES", "SMALL", "THEOREM", "c6", "c9"]

RIDGES = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
LEVELS = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
THEOREM = (0.3, 0.6)
FALLING = -0.9  # rank correlation of six points: one pair of neighbours may be swapped
NEAR = 10.0  # %: how far the final cost may be from U
SMALL = 0.1  # of |grad F|, and of |w|
FORMS = {"ssca": "lambda", "limit": "U"}


def c6(n: Numbers) -> Outcome:
    """Falling along four curves; the cost near U, and the accuracy in its order, on two."""
    n["whole.rows"]
    parts, said = {}, []
    for split in SPLITS:
        for kind, text in FORMS.items():
            order = n[f"{split}_{kind}.order"]
            parts[f"|w|^2 falling along {text}, {split}"] = order.high <= FALLING
            said.append(f"{split}, {text}: {order.text()}")
    for split in SPLITS:
        excess = {u: n[f"{split}_limit_U{u:g}.excess"] for u in LEVELS}
        near = all(x.low >= -NEAR and x.high <= NEAR for x in excess.values())
        parts[f"the cost within {NEAR:g} % of every U, {split}"] = near
        by_u = n[f"{split}_limit.accuracy_order"]
        parts[f"the accuracy falling with U, {split}"] = by_u.high <= FALLING
        each = ", ".join(f"{x.value:+.3g} % ({u:g})" for u, x in excess.items())
        said.append(f"cost above U (at U), {split}: {each}; accuracy by U: {by_u.text()}")
    return judge(parts, "rank correlation of |w|^2 and cost, " + "; ".join(said))


def c9(n: Numbers) -> Outcome:
    """At both levels: a small gradient of (27), and a point that (27) does not leave."""
    n["whole.theorem"]
    parts, said = {}, []
    for u in THEOREM:
        gradient, moved = n[f"theorem_U{u:g}.gradient"], n[f"theorem_U{u:g}.moved"]
        parts[f"the gradient of (27) small, U = {u:g}"] = gradient.high <= SMALL
        parts[f"w staying, U = {u:g}"] = moved.high <= SMALL
        said.append(
            f"U = {u:g}: gradient {gradient.text()} of |grad F|, moved {moved.text()} of |w|"
        )
    return judge(parts, "; ".join(said))
