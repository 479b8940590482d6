"""The result of a run: `Trace`."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedlib import checks
from fedlib.core import files
from fedlib.core.identity import Identity
from fedlib.provenance import versions
from fedlib.shapes import AnyTensor, Vector

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

FORMAT = files.Format("trace", 1)  # of the files that `Trace.save` writes
LARGEST_MODEL = 1000  # final models with at most this many parameters are saved


@dataclass(frozen=True)
class Trace:
    """The curves of one configuration over S seeds.

    >>> import torch
    >>> from fedlib import FedAvg, problems, run
    >>> trace = run(FedAvg(0.1, 2, 4), problems.quadratics(), rounds=4, seeds=(0, 1))
    >>> trace.metrics["f"].shape, trace.info["bits_up"].shape
    ((2, 5), (2, 4))

    Attributes
    ----------
    metrics : mapping of str to array
        Name -> `[S, T_eval]`, the problem's exact metrics at the *start* of the rounds in `rounds`;
        the last column describes the final model.
    info : mapping of str to array
        Name -> `[S, T]`, the reports of the rounds, such as `bits_up` and `bits_down`.
    rounds : array
        `[T_eval]`, the round of every column of `metrics`; the last is T.
    seeds : tuple of int
        The S seeds.
    config : mapping
        The algorithm, the problem and the rounds, by which a stored run is found.
    provenance : mapping
        Versions, device and time.
    state : object
        The final state, every tensor with leading axis S. A stored run has only the final models
        `[S, d]`, or None if they are large.
    output : array or None
        The algorithm's solution `[S, d]` if that is not the final model, else None. For FedSGM it
        is the averaged iterate, NaN if no round stepped on f.
    identity : Identity
        What tells the run from others of the same configuration; `run(start=...)` needs it, and no
        file has it.
    """

    metrics: Mapping[str, Array]
    info: Mapping[str, Array]
    rounds: NDArray[np.int64]
    seeds: tuple[int, ...]
    config: Mapping[str, Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    state: Any = None
    output: Array | None = None
    identity: Identity = field(default_factory=Identity, repr=False)

    def of_rounds(self, name: str) -> Array:
        """A metric at the starts of the rounds, without the final model: `[S, T_eval - 1]`."""
        checks.one_of("Trace", "the name of a metric", name, self.metrics.keys())
        return self.metrics[name][:, :-1]

    def late(self, name: str, share: float = 0.2) -> Array:
        """A metric's mean over the last `share` of the evaluated rounds, for each seed: `[S]`."""
        checks.in_range("late", "share", share, 0, 1, open_low=True)
        curves = self.of_rounds(name)
        if np.isnan(curves).any():
            warnings.warn(f"late: metric {name!r} is NaN in some rounds.", stacklevel=2)
        count = max(1, round(share * curves.shape[1]))
        late_curves = curves[:, -count:]
        return np.asarray(late_curves.mean(1))

    def to_frame(self) -> "pd.DataFrame":
        """A tidy data frame: a row per seed and evaluated round, a column per metric."""
        import pandas as pd

        columns = {
            "seed": np.repeat(self.seeds, len(self.rounds)),
            "round": np.tile(self.rounds, len(self.seeds)),
        }
        for name, curves in self.metrics.items():
            columns[name] = curves.reshape(-1)
        return pd.DataFrame(columns)

    def model(self, seed: int | None = None) -> Vector:
        """The final model `[d]` of `seed`, which may be left out if there is only one.

        Raises ValueError for a seed that was not run, or a trace without models.
        """
        models = getattr(self.state, "w", self.state)
        remedy = "save the state beside the trace"
        rule = "hold the final models"
        checks.require(models is not None, "Trace", "state", rule, None, remedy)
        if seed is None and len(self.seeds) == 1:
            seed = self.seeds[0]
        if isinstance(seed, np.integer):
            seed = int(seed)
        checks.one_of("Trace", "seed", seed, self.seeds)
        model = models[self.seeds.index(seed)]
        return torch.as_tensor(model).cpu()

    def state_dict(self, module: nn.Module, seed: int | None = None) -> dict[str, AnyTensor]:
        """The `state_dict` of `module` with the final model of `seed`.

        `seed` may be left out if there is only one. Raises ValueError if the model does not fit,
        for a seed that was not run, or for a trace without models.
        """
        checks.arguments(Trace.state_dict, locals())
        w = self.model(seed)
        trained = [p for p in module.parameters() if p.requires_grad]
        sizes = [p.numel() for p in trained]
        checks.vector("state_dict", "the final model", w, sum(sizes))
        values: dict[Tensor | None, Tensor] = {}
        pieces = torch.split(w, sizes)
        for weight, entries in zip(trained, pieces, strict=True):
            values[weight] = entries.view(weight.shape).clone()
        by_name = dict(module.named_parameters(remove_duplicate=False))  # tied weights have several
        state = {}
        for name, tensor in module.state_dict().items():
            parameter = by_name.get(name)  # None for a buffer
            state[name] = values.get(parameter, tensor)
        return state

    def load_into(
        self,
        module: nn.Module,
        seed: int | None = None,
    ) -> nn.Module:
        """Set the module's parameters to the final model of `seed`; return the module.

        `seed` may be left out if there is only one. Raises ValueError if the model does not fit,
        for a seed that was not run, or for a trace without models.
        """
        module.load_state_dict(self.state_dict(module, seed))
        return module

    def save(self, path: Path | str) -> None:
        """Write curves, configuration and provenance to one JSON file, completely or not at all.

        The file contains the final models `[S, d]` if d is at most 1000. To keep larger models,
        call `torch.save(trace.state_dict(module, seed), path)`. Numbers keep all their digits.
        Raises OSError if the folder is not writable.
        """
        checks.value("Trace.save", "path", path, Path | str)
        w = getattr(self.state, "w", self.state)
        output = self.output
        if w is not None and w.shape[-1] > LARGEST_MODEL:
            warnings.warn(
                f"Trace.save: models of {w.shape[-1]} parameters are left out; keep them by "
                "torch.save(trace.state_dict(module, seed), path).",
                stacklevel=2,
            )
            w = None
        if w is None:
            output = None
        content = {
            "config": dict(self.config),
            "rounds": self.rounds.tolist(),
            "seeds": list(self.seeds),
            "metrics": {name: to_rows(curves) for name, curves in self.metrics.items()},
            "info": {name: to_rows(curves) for name, curves in self.info.items()},
            "final_w": None if w is None else to_rows(w),
            "output_w": None if output is None else to_rows(output),
            "provenance": {**versions(), **self.provenance},
        }
        files.write_json(Path(path), FORMAT.sealed(content))

    @staticmethod
    def load(path: Path | str) -> "Trace":
        """Read a file that `save` wrote.

        Raises ValueError for a file that is missing, damaged, of another kind, or of a version that
        cannot be read.
        """
        checks.value("Trace.load", "path", path, Path | str)
        content = files.read_json(Path(path))
        written_kind = content.get("kind")
        name = Path(path).name
        rule = "be written by Trace.save"
        remedy = "stored runs of studies are read with Study.load"
        fits = written_kind == FORMAT.kind
        checks.require(fits, "Trace.load", name, rule, written_kind, remedy)
        content = FORMAT.current(content, name)
        models = content["final_w"]
        output = content["output_w"]
        return Trace(
            metrics={name: from_rows(rows) for name, rows in content["metrics"].items()},
            info={name: from_rows(rows) for name, rows in content["info"].items()},
            rounds=np.array(content["rounds"]),
            seeds=tuple(content["seeds"]),
            config=content["config"],
            provenance=content["provenance"],
            state=None if models is None else from_rows(models),
            output=None if output is None else from_rows(output),
        )


def to_rows(x: Any) -> list[list[float | None]]:
    """A matrix as lists; NaN and infinity become None, JSON's null."""
    return [[float(v) if math.isfinite(v) else None for v in row] for row in x]


def from_rows(rows: list[list[float | None]]) -> Array:
    """The inverse of `to_rows`; null becomes NaN."""
    return np.array(rows, dtype=float)  # numpy reads None as NaN
