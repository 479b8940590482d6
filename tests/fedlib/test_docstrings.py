"""Every public class shows how it is used; `--doctest-modules` runs what it shows."""

import doctest
import inspect

import pytest

import fedlib as fl

CLASSES = [name for name in fl.__all__ if inspect.isclass(getattr(fl, name))]


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_class_has_an_example(name):
    shown = doctest.DocTestParser().get_examples(getattr(fl, name).__doc__ or "")
    assert shown
    assert any(example.want for example in shown), "an example shows what comes out"
    assert len(shown) <= 6, "an example is short"


def test_there_are_public_classes():
    assert len(CLASSES) > 50
