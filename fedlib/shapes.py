"""Names for the shapes that most signatures have; the letters are those of `core/problem.py`."""

from jaxtyping import Bool, Float, Shaped
from torch import Tensor

#: A number as a tensor.
Scalar = Float[Tensor, ""]
#: A truth value as a tensor.
Flag = Bool[Tensor, ""]
#: A model, a gradient or a direction.
Vector = Float[Tensor, "d"]
#: A number for each of the K losses.
PerLoss = Float[Tensor, "K"]
#: A tensor of any shape and any type of numbers.
AnyTensor = Shaped[Tensor, "..."]
