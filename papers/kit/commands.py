"""What command lines share: a refusal is one sentence, and every end is quiet."""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import NoReturn

from fedlib import checks
from fedlib.data import DataError

WRONG, STOPPED, CLOSED = 2, 130, 141  # exit statuses; the latter two as a shell counts signals
#: How our refusals read. Any other text of an error comes from the depths and is a bug to be seen.
SENTENCE = re.compile(r"[^\n:]{1,80}: [^\n]+\.")
REFUSALS = (ValueError, TypeError, FloatingPointError)


class Parser(argparse.ArgumentParser):
    """A parser of arguments that refuses in one sentence."""

    def error(self, message: str) -> NoReturn:
        """End with status 2, without the usage, which `--help` shows."""
        self.exit(WRONG, f"{self.prog}: {message}; see --help.\n")


def count(text: str) -> int:
    """The type of an option that takes a whole number from 1 on."""
    try:
        if (number := int(text)) >= 1:
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text!r}")


def carried_out(work: Callable[[], int], who: str, after_stop: str) -> int:
    """The exit status of `work`; what stops it ends in one sentence on stderr.

    `after_stop` says what becomes of work that Ctrl-C has stopped. What cannot be shown in the
    encoding of the terminal is shown by its code. Errors whose text is no sentence of ours pass.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    asked: list[int] = []
    try:
        with noticed(asked):
            status = work()
            sys.stdout.flush()
        return status
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not asked:
            if not isinstance(error, DataError):
                raise
            say(str(error))
            return WRONG
        say(f"{who}: stopped; {after_stop}.")
        return STOPPED
    except BrokenPipeError:  # who read the output, such as `head`, has enough
        drop_output()
        return CLOSED
    except OSError as error:
        say(sentence_of(error, who))
        drop_output()
        return WRONG
    except REFUSALS as error:
        if SENTENCE.fullmatch(str(error)) is None:
            raise
        say(str(error))
        return WRONG


@contextmanager
def noticed(asked: list[int]) -> Iterator[None]:
    """Note every Ctrl-C: torch, stopped within a recorded step, raises another error for it."""

    def stop(number: int, _: object) -> NoReturn:
        asked.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def sentence_of(error: OSError, who: str) -> str:
    """What the system refused, as a sentence; ours are left as they are."""
    if SENTENCE.fullmatch(str(error)):
        return str(error)
    what = f"the file {os.fspath(error.filename)!r}" if error.filename else "what is written"
    why = error.strerror or type(error).__name__
    return f"{who}: {what} must have its place and its permissions, got {why!r}."


def say(sentence: str) -> None:
    """A sentence on stderr, if anybody reads it."""
    with suppress(OSError):
        print(sentence, file=sys.stderr, flush=True)


def drop_output() -> None:
    """Send what is left of stdout nowhere, where it cannot be written: Python would try again."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def known(who: str, name: str, value: str, options: Iterable[str]) -> None:
    """Require one of many names; raises ValueError with those that come nearest."""
    every = list(options)
    if value not in every:
        raise ValueError(
            checks.sentence(who, name, "be a known name", value, nearest(value, every))
        )


def nearest(name: str, options: Iterable[str]) -> str:
    """Some of the known names, those that look like `name` first."""
    every = list(options)
    close = get_close_matches(name, every, n=3, cutoff=0.5)
    shown = [*close, *(k for k in every if k not in close)][: len(close) or 6]
    kind = "nearest" if close else "known" if len(shown) == len(every) else "some that are there"
    return f"{kind}: {', '.join(shown)}"
