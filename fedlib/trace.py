"""What a run leaves: `Trace`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Trace"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """Curves of one configuration over S seeds.

    Attributes
    ----------
    metrics : name -> `[S, T_eval]`, the problem's exact metrics at the *start* of the rounds in
        `rounds`; the last column is the final model.
    info : name -> `[S, T]`, what the rounds reported, among it `bits_up` and `bits_down`.
    rounds : `[T_eval]`, the round numbers of the columns of `metrics`, ending with T.
    seeds : S numbers.
    config : algorithm, problem, rounds: what the stored run is keyed by.
    provenance : versions, device, time.
    state : the final state, every tensor with leading axis S; of a stored run the final models
        `[S, d]` alone, or None if they are large.
    output : what the algorithm returns as its solution `[S, d]` where that is not the final model
        (FedSGM's averaged iterate; NaN where it is undefined), else None.
    """

    metrics: Mapping[str, Array]
    info: Mapping[str, Array]
    rounds: NDArray[np.int64]
    seeds: tuple[int, ...]
    config: Mapping[str, Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    state: Any = None
    output: Array | None = None

    def of_rounds(self, name: str) -> Array:
        """A metric at the starts of rounds only, without the final model: `[S, T_eval - 1]`."""
        return self.metrics[name][:, :-1]

    def late(self, name: str, share: float = 0.2) -> Array:
        """Per seed the mean of a metric over the last `share` of the evaluated rounds, `[S]`."""
        x = self.of_rounds(name)
        return np.asarray(x[:, -max(1, round(share * x.shape[1])) :].mean(1))

    def to_frame(self) -> pd.DataFrame:
        """A tidy frame: one row a seed and evaluated round, one column a metric."""
        import pandas as pd

        s, t = len(self.seeds), len(self.rounds)
        columns: dict[str, Any] = {
            "seed": np.repeat(self.seeds, t),
            "round": np.tile(self.rounds, s),
        }
        columns.update({name: x.reshape(-1) for name, x in self.metrics.items()})
        return pd.DataFrame(columns)
