"""Names for the shapes that most signatures have; the letters are those of `core/problem.py`."""

from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

#: A number as a tensor.
Scalar = Float[Tensor, ""]
#: A truth value as a tensor.
Flag = Bool[Tensor, ""]
#: A whole number as a tensor.
WholeNumber = Int[Tensor, ""]
#: A model, a gradient or a direction.
Vector = Float[Tensor, "d"]
#: A number for each of the K losses.
PerLoss = Float[Tensor, "K"]
#: A number for each of the M objectives.
PerObjective = Float[Tensor, "M"]
#: A gradient for each of the M objectives.
Jacobian = Float[Tensor, "M d"]
#: The inner products of the M objectives' gradients.
Gram = Float[Tensor, "M M"]
#: A number for each row of a batch.
Rowwise = Float[Tensor, "B"]
#: A tensor with a line for each row of data.
AnyRows = Shaped[Tensor, "R ..."]
#: A tensor of any shape and any type of numbers.
AnyTensor = Shaped[Tensor, "..."]
