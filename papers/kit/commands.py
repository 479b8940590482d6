"""What command lines share: a refusal is one sentence, and every end is quiet."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import NoReturn

from fedlib import checks
from fedlib.data import DataError

WRONG, STOPPED, CLOSED = 2, 130, 141  # exit statuses; the latter two as a shell counts signals
#: How our refusals read. Any other text of an error comes from the depths and is a bug to be seen.
SENTENCE = re.compile(r"[^\n:]{1,80}: [^\n]+\.")


class Parser(argparse.ArgumentParser):
    """A parser of arguments that refuses in one sentence."""

    def error(self, message: str) -> NoReturn:
        """End with status 2, without the usage, which `--help` shows."""
        self.exit(WRONG, f"{self.prog}: {message}; see --help.\n")


def count(text: str) -> int:
    """The type of an option that takes a whole number from 1 on."""
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text!r}")


def carried_out(work: Callable[[], int], who: str, after_stop: str) -> int:
    """The exit status of `work`; what stops it ends in one sentence on stderr.

    `after_stop` says what becomes of work that Ctrl-C has stopped. Errors whose text is no sentence
    of ours pass.
    """
    try:
        status = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"{who}: stopped; {after_stop}.", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # who read the output, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try again
        return CLOSED
    except (OSError, ValueError, TypeError, FloatingPointError, DataError) as error:
        if SENTENCE.fullmatch(str(error)) is None:
            raise
        print(error, file=sys.stderr)
        return WRONG
    return status


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
    kind = "nearest" if close else "known" if len(every) <= 6 else "some that are there"
    return f"{kind}: {', '.join(close or every[:6])}"
