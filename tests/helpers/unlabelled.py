"""Quantities of runs without labels, each under its name."""

from papers.kit.quantities import Quantities, row, table


def quantities(numbers):
    """The quantities with these names and numbers."""
    return Quantities.of([table(row(name, number) for name, number in numbers.items())], {})
