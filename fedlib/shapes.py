"""Names for the shapes that most signatures have; the letters are those of `core/problem.py`."""

from jaxtyping import Bool, Float
from torch import Tensor

#: A number as a tensor.
Scalar = Float[Tensor, ""]
#: A truth value as a tensor.
Flag = Bool[Tensor, ""]
#: A model, a gradient or a direction.
Vector = Float[Tensor, "d"]
