"""Programs that are run to their end, in processes of their own."""

import os
import subprocess
import sys
import traceback


def ran(*words, check=False, **options):
    """The finished process; what it said is text."""
    plain = [str(w) for w in words]
    return subprocess.run(
        plain,
        capture_output=True,
        encoding="utf-8",
        check=check,
        **options,
    )


def python(*words, **options):
    """The same of a program of Python."""
    return ran(sys.executable, *words, **options)


def forked(function, *arguments):
    """Start a copy of this process that calls a function and ends; gives its number."""
    number = os.fork()
    if number:
        return number
    status = 1
    try:
        function(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def status_of(number):
    """The exit status of a forked process, once it has ended."""
    _, status = os.waitpid(number, 0)
    return os.waitstatus_to_exitcode(status)
