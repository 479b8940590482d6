"""Numbers that are planted under a rule, and figures drawn from made-up runs."""

from matplotlib.figure import Figure

from papers.kit.numbers import Number


def about(value, half=0.1, per_seed=()):
    """A number whose interval reaches `half` to both sides."""
    return Number(value, value - half, value + half, per_seed)


def drawn(make, traces):
    """The axes of a figure."""
    figure = Figure(layout="constrained")
    make(traces)(figure)
    return figure.axes
