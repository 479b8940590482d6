"""Quantities of runs without labels, each under its name."""

from papers.kit.quantities import Quantities, row


def quantities(numbers):
    """The quantities with these names and numbers."""
    return Quantities.of([[row(name, number) for name, number in numbers.items()]], {})
