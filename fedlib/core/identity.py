"""What tells one run from another beside its configuration."""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Identity:
    """Digests of a run's parts, and sketches of the float tensors in them.

    Attributes
    ----------
    digests : dict of str to str
        Name of a part, such as `problem.losses`, -> digest of all in it but float tensors.
    sketches : dict of str to Tensor
        Name of a part -> a row for each of its float tensors: projections, then the length and the
        tolerance of the projections as a share of the length.
    """

    digests: dict[str, str] = field(default_factory=dict)
    sketches: dict[str, Float[Tensor, "n P"]] = field(default_factory=dict)

    def difference(self, other: "Identity") -> str:
        """The name of a part in which another run differs; "" if there is none."""
        names = list(self.digests | other.digests)
        for name in names:
            if self.digests.get(name) != other.digests.get(name):
                return name
        for name in names:
            ours = self.sketches.get(name)
            theirs = other.sketches.get(name)
            if ours is None or theirs is None:
                if ours is not theirs:
                    return name
                continue
            if ours.shape != theirs.shape:
                return name
            their_length = theirs[:, -2:-1]
            length = ours[:, -2:-1].maximum(their_length)
            tolerance = ours[:, -1:] * length
            difference = ours[:, :-1] - theirs[:, :-1]
            distance = difference.abs()
            if not bool((distance <= tolerance).all()):
                return name
        return ""
