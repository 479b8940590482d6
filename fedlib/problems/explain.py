"""Failures of people's modules and functions as one sentence, with the line of their code."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fedlib.core.trees import explain_map_error

#: Parts of torch's messages where it wants whole numbers, such as classes, and got floats.
WANTS_WHOLE = (
    "expected target dtype to be Long",
    "scalar type Long but found",
    "scalar types: Long",
    "applicable to index tensor",
    "used as indices must be",
    "int64 for index",
    "indices should be Long",
)
#: Parts of torch's messages where it wants floats and got whole numbers, truth values or bytes.
WANTS_FLOATS = (
    "desired output type Long",
    "Found dtype Long",
    "found Long and",
    "Integral inputs not supported",
    "but got Long and",
    "but got Byte and",
    "but got Bool and",
    "input.to(torch.float",
    "could not infer output dtype",
    "(unsigned char)",
)


#: What to do about modules of some forms, by parts of torch's messages.
FORMS = {
    "Jitted modules": "pass the module before torch.jit",
    "nn.DataParallel": "pass its attribute module",
    "does not require grad and does not have a grad_fn": "take torch.func.grad",
}


def attempt(caller: str, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; a failure raises ValueError with its first line and the user's code line."""
    try:
        return function(*arguments)
    except Exception as error:
        raise ValueError(f"{caller}: {name} must {unmet_rule(name, error)}.") from error


def unmet_rule(name: str, error: Exception) -> str:
    """What a module or a function must do, how it failed, and what to write in its place."""
    text = str(error).strip() or type(error).__name__
    line = user_line(error)
    if "saved tensor hooks" in text:
        return (
            f"not use hooks on saved tensors, as torch.utils.checkpoint does{line}: torch.func has "
            "no such hooks; take them out, since one client at a time needs little memory"
        )
    if "random operation" in text:
        return (
            f"not draw random numbers{line}: one recording serves all clients; take nn.Dropout, "
            "whose masks a run draws, or draw them before"
        )
    recorded = any(words in text for words in ("dynamic shape", "nonzero", "masked_select"))
    if recorded or explain_map_error(error):
        return (
            f"not read values{line}: one recording serves all clients; write "
            "rows.mean(values, where=condition), torch.where(condition, a, b), or for "
            "F.one_hot(target, k): torch.eye(k)[target]"
        )
    reason = text.splitlines()[0].rstrip(".")
    return f"work on rows, but failed{line}: {reason}{remedy_of(name, text)}"


def remedy_of(name: str, text: str) -> str:
    """What to write where torch complains of a dtype or of a module's form, or nothing."""
    for words, remedy in FORMS.items():
        if words in text:
            return f"; {remedy}"
    wants_whole = any(words in text for words in WANTS_WHOLE)
    wants_floats = any(words in text for words in WANTS_FLOATS)
    if not wants_whole and not wants_floats:
        return ""
    if name.startswith("module"):
        numbers = "floats"
        if wants_whole:
            numbers = "whole numbers (int64)"
        return f"; pass the inputs as {numbers}"
    cast = "float()"
    if wants_whole:
        cast = "long()"
    return f"; write rows.target.{cast} where the target is meant"


def user_line(error: Exception) -> str:
    """The last line of a traceback that is neither in torch nor in this library."""
    library = Path(__file__).parents[1]
    torch_folder = Path(torch.__file__).parent
    libraries = (str(library), str(torch_folder))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        is_python = frame.filename.endswith(".py")
        if is_python and frame.line and not frame.filename.startswith(libraries):
            return f" at `{frame.line[:80]}`"
    return ""
