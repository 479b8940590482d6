"""The runs and numbers of a notebook that was run again, as files such as those of the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedlib.core import Trace
from fedlib.core.files import SCHEMA, digest, write_json
from papers.kit.numbers import Number
from papers.kit.runfile import models, to_lists
from papers.kit.store import numbers_content
from papers.kit.study import Study

PROFILE = "full"  # the book's pages show this one; here it is whatever was run


def keep(
    folder: Path, study: Study, traces: Mapping[str, Trace], numbers: Mapping[str, Number]
) -> None:
    """Write what a page of the book needs to show these runs in place of the stored ones."""
    place = folder / study.name / PROFILE
    place.mkdir(parents=True, exist_ok=True)
    payloads = {name: sealed(of_trace(study.name, name, trace)) for name, trace in traces.items()}
    health = study.health(traces)
    made = sealed(numbers_content(study.name, PROFILE, numbers, payloads, health))
    for name, content in {**payloads, "numbers": made}.items():
        write_json(place / f"{name}.json", content)


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "digest": digest(content)}


def of_trace(study: str, name: str, trace: Trace) -> dict[str, Any]:
    """What would be stored of a run that was loaded or computed by a study."""
    config = {k: v for k, v in trace.config.items() if k != "bits"}
    return {
        "schema": SCHEMA,
        "kind": "run",
        "study": study,
        "profile": PROFILE,
        "name": name,
        "key": digest(config)[:16],
        "config": config,
        "rounds": trace.rounds.tolist(),
        "seeds": list(trace.seeds),
        "metrics": {k: to_lists(v) for k, v in trace.metrics.items()},
        "info": {k: to_lists(v) for k, v in trace.info.items()},
        "bits": trace.config["bits"],
        "final_w": None if trace.state is None else models(trace.state, always=True),
        "output_w": None if trace.output is None else models(trace.output, always=True),
        "provenance": trace.provenance,
    }
