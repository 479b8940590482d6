"""The score of each module by mutants, and the mutants that no test noticed.

mutmut results --all true | python -m tests.helpers.mutants
"""

import re
import sys
from collections import Counter, defaultdict

#: What a test that fails, a run that never ends and a crash say: somebody noticed.
NOTICED = ("killed", "timeout", "segfault")
SURVIVED = ("survived", "no tests")


def read(lines):
    """The state of every mutant that was tried, by its name."""
    states = {}
    for line in lines:
        name, _, state = line.strip().partition(": ")
        if "__mutmut_" in name and state in (*NOTICED, *SURVIVED):
            states[name] = state
    return states


def module_of(name):
    return re.split(r"\.x(?:_|ǁ)", name)[0]


def scores(states):
    """For each module: how many mutants were noticed, and how many were tried."""
    counts = defaultdict(Counter)
    for name, state in states.items():
        counts[module_of(name)]["noticed"] += state in NOTICED
        counts[module_of(name)]["tried"] += 1
    return {module: (count["noticed"], count["tried"]) for module, count in counts.items()}


def report(states):
    """Survivors, then a table with a row for each module."""
    lines = [f"{name}: {state}" for name, state in sorted(states.items()) if state in SURVIVED]
    lines += ["", "| module | noticed | tried | share |", "| --- | ---: | ---: | ---: |"]
    for module, (noticed, tried) in sorted(scores(states).items()):
        lines.append(f"| `{module}` | {noticed} | {tried} | {noticed / tried:.0%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(read(sys.stdin)))
