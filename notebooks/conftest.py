"""Leaves out the quick notebooks whose data are not in the cache, and says so."""

from fedlib import data
from fedlib.studies import NEEDS_IN_QUICK

MISSING = {
    name: [x for x in needed if not data.available(x)] for name, needed in NEEDS_IN_QUICK.items()
}
LEFT_OUT = sorted(name for name, missing in MISSING.items() if missing)
collect_ignore = [f"quick/{name}.ipynb" for name in LEFT_OUT]


def pytest_report_header() -> list[str]:
    """One line for every notebook that is left out."""
    return [
        f"left out: {name}, {', '.join(MISSING[name])} not in the data cache (FEDLIB_DATA)"
        for name in LEFT_OUT
    ]
