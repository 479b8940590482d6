"""JSON files that are sealed by a digest, read with checks and written whole."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedlib.core.whole import write_whole

SCHEMA = 1


def read(path: Path, kind: str | None = None) -> dict[str, Any]:
    """A stored file, checked; of a certain kind, if one is named.

    Raises
    ------
    ValueError
        one sentence, for a file that is missing, damaged, changed by hand, or of another schema or
        kind.
    """
    what = "/".join(path.parts[-3:])
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"store: {what} must exist, it is not there; make it with `make reproduce`, or with "
            "Trace.save for a run of your own."
        ) from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ValueError(
            f"store: {what} must be a file that can be read, got {why!r}; see its place and its "
            "permissions."
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too long or too deep
        why = str(error).partition("\n")[0]
        raise ValueError(
            f"store: {what} must be whole JSON, it is damaged ({why}); delete it and reproduce."
        ) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        given = data.get("schema") if isinstance(data, dict) else None
        raise ValueError(
            f"store: {what} must have schema {SCHEMA}, got {given}; reproduce it with this version."
        )
    sealed = data.pop("digest", None)
    if digest(data) != sealed:
        raise ValueError(
            f"store: {what} must agree with its digest, it was changed after it was written; "
            "restore it or reproduce it."
        )
    if kind is not None and data.get("kind") != kind:
        raise ValueError(
            f"store: {what} must be of kind {kind!r}, got {data.get('kind')!r}; restore it or "
            "reproduce it."
        )
    return {**data, "digest": sealed}


def write_json(path: Path, payload: Mapping[str, Any]) -> None:
    """Write a file whole: one line a seed, so that a change shows as one line."""
    text = as_text(payload)
    write_whole(path, lambda file: file.write(text.encode()))


def as_text(payload: Mapping[str, Any]) -> str:
    """What is in the file of a payload."""
    return compact(json.dumps(payload, indent=1))


def compact(text: str) -> str:
    """Indented JSON with every innermost list on one line."""
    return re.sub(r"\[[^\[\]{}]*\]", lambda m: re.sub(r"\s*\n\s*", " ", m[0]), text) + "\n"


def digest(content: Any) -> str:
    """SHA-256 of canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
