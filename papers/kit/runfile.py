"""What is stored of one run: its file's content, and the Trace that is read from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from fedlib.core.describe import describe
from fedlib.core.files import SCHEMA, digest
from fedlib.core.trace import LARGEST_MODEL
from fedlib.provenance import versions
from papers.kit.numbers import number, significant

if TYPE_CHECKING:
    from papers.kit.store import Spec


def to_payload(study: str, profile: str, name: str, spec: Spec, trace: Trace) -> dict[str, Any]:
    content = {
        "schema": SCHEMA,
        "kind": "run",
        "study": study,
        "profile": profile,
        "name": name,
        "key": spec.key(),
        "maker": spec.maker(),
        "config": {
            "algorithm": describe(spec.algorithm),
            "problem": trace.config["problem"],
            "rounds": spec.rounds,
            "seeds": list(spec.seeds),
            "evaluate_every": spec.evaluate_every,
        },
        "rounds": trace.rounds.tolist(),
        "seeds": list(trace.seeds),
        "metrics": {k: to_lists(v) for k, v in trace.metrics.items() if k in spec.keep},
        "info": {k: to_lists(v) for k, v in trace.info.items() if k in spec.keep},
        "bits": {k: float(trace.info[k].mean()) for k in ("bits_up", "bits_down")},
        "final_w": models(trace.state.w.double(), always="final_w" in spec.keep),
        "output_w": None if trace.output is None else models(trace.output),
        "provenance": provenance(trace, spec.sources()),
    }
    return {**content, "digest": digest(content)}


def to_trace(payload: Mapping[str, Any]) -> Trace:
    """The Trace of a stored or freshly computed run; `state` is the final models `[S, d]`."""
    arrays = {
        part: {
            k: np.array([[number(x) for x in row] for row in v]) for k, v in payload[part].items()
        }
        for part in ("metrics", "info")
    }
    return Trace(
        metrics=arrays["metrics"],
        info=arrays["info"],
        rounds=np.array(payload["rounds"]),
        seeds=tuple(payload["seeds"]),
        config={**payload["config"], "bits": payload["bits"]},
        provenance=payload["provenance"],
        state=to_models(payload["final_w"]),
        output=to_models(payload["output_w"]),
    )


def provenance(trace: Trace, sources: Mapping[str, str]) -> dict[str, Any]:
    """Where a run comes from; no name of a host or a person.

    How many of its rounds were compiled is said of runs with such: their last digits are others.
    """
    compiled = trace.provenance.get("compiled", 0)
    return {
        **versions(),
        "sources": dict(sources),
        "device": trace.provenance["device"],
        "threads": trace.provenance["threads"],
        "wall_s": significant(trace.provenance["wall_s"], 3),
        **({"compiled": compiled} if compiled else {}),
    }


def mark(payload: Mapping[str, Any]) -> str:
    """A short digest of all of a run."""
    return str(payload["digest"][:16])


def to_lists(x: Any) -> list[list[float | None]]:
    """Rows of numbers with six significant digits."""
    return [[significant(float(v)) for v in row] for row in x]


def to_models(rows: list[list[float | None]] | None) -> Any:
    """The inverse of `models`."""
    return None if rows is None else np.array([[number(x) for x in row] for row in rows])


def models(w: Any, always: bool = False) -> list[list[float | None]] | None:
    """Models `[S, d]`, if they are small or asked for."""
    return to_lists(w) if always or w.shape[-1] <= LARGEST_MODEL else None
