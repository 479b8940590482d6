"""Which cases of a test run on every change; the further ones are run every week."""

import pytest


def further_weekly(cases, always):
    """The cases as pytest's parameters: those in `always` on every change, the others weekly.

    Raises
    ------
    ValueError
        if `always` has a name that is no case: it would be run by nobody on a change.
    """
    names = list(cases)
    unknown = [name for name in always if name not in names]
    if unknown or not always:
        raise ValueError(f"further_weekly: always must name some of {names}, got {always}")
    parameters = []
    for name in names:
        values = name if isinstance(name, tuple) else (name,)
        marks = () if name in always else pytest.mark.weekly
        parameters.append(pytest.param(*values, marks=marks))
    return parameters
