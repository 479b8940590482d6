"""Every public class shows how it is used; `--doctest-modules` runs what it shows.

Of a family of methods one does: all are run as `fedlib.testing.examples` has them.
"""

import doctest
import inspect

import pytest

import fedlib as fl

ALIKE = {method.__name__ for method in fl.algorithms.ALGORITHMS} | {"OneWay", "MeanOfGrams"}
ALIKE |= {"Sequential", "Vectorized"}
ALIKE -= {"FedSGM", "FedAvg", "SGM", "ConEx", "FedCMOO", "FedFW", "FedDR", "SSCA", "VerticalSSCA"}
CLASSES = [n for n in fl.__all__ if n not in ALIKE and inspect.isclass(getattr(fl, n))]


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_class_has_an_example(name):
    shown = doctest.DocTestParser().get_examples(getattr(fl, name).__doc__ or "")
    assert shown
    assert any(example.want for example in shown), "an example shows what comes out"


def test_there_are_public_classes():
    assert len(CLASSES) > 35
