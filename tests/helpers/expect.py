"""What many tests expect of a call: numbers that are equal, or a refusal in one sentence."""

import re

import pytest
import torch


def close(actual, expected, tol=1e-12):
    """Equal up to `tol` in every entry."""
    actual = torch.as_tensor(actual)
    expected = torch.as_tensor(expected)
    torch.testing.assert_close(actual, expected, atol=tol, rtol=0)


def near(actual, expected, **tolerances):
    """Equal up to rounding, or up to what `pytest.approx` is told."""
    assert actual == pytest.approx(expected, **tolerances)


def refuses(words, make, /, *args, error=ValueError, **options):
    """`make(*args, **options)` stops with one sentence that says `words`; a * is any text."""
    with pytest.raises(error) as caught:
        make(*args, **options)
    text = str(caught.value)
    pattern = ".*".join(map(re.escape, words.split("*")))
    assert re.search(pattern, text), text
    assert text.endswith("."), text
    assert "\n" not in text
