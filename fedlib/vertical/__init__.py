r"""Vertical federation: each client holds some features of every sample.

$f(w; x) = g(w_0, (h_i(w_i, x_i))_i)$ is equation (2) of Ye and Cui (arXiv 2104.06011). Client i has
the block $x_i$ of every sample and its own parameters $w_i$; the parameters $w_0$ are common.
`Partition` defines who has what, `Composite` the form of the losses. `vertical` adds the form to a
problem, whose `Party` holds what one client can use in a round. Every message of a round crosses a
`Line`, which counts its bits. Clients are numbered 1 .. I, as in the paper's tables.
"""

from fedlib.vertical.composite import Composite, Party
from fedlib.vertical.line import Line, check_vertical
from fedlib.vertical.partition import Partition, contiguous
from fedlib.vertical.problem import VerticalProblem, vertical

__all__ = [
    "Composite",
    "Line",
    "Partition",
    "Party",
    "VerticalProblem",
    "check_vertical",
    "contiguous",
    "vertical",
]
