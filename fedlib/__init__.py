"""fedlib: constrained and multi-objective federated optimization, as five papers describe it."""

from fedlib import (
    algorithms,
    compress,
    core,
    data,
    metrics,
    problems,
    sets,
    steps,
    testing,
    weights,
)
from fedlib.algorithms import *
from fedlib.compress import *
from fedlib.core import *
from fedlib.engine.loop import Diverged
from fedlib.provenance import library_version
from fedlib.run import run
from fedlib.sets import *
from fedlib.steps import *
from fedlib.testing import *
from fedlib.weights import *

__version__ = library_version()

__all__: list[str] = ["Diverged", "data", "metrics", "problems", "run"]
__all__ += algorithms.__all__
__all__ += compress.__all__
__all__ += core.__all__
__all__ += sets.__all__
__all__ += steps.__all__
__all__ += testing.__all__
__all__ += weights.__all__
