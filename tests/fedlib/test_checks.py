"""Argument checks: what passes, what is refused, and the one form of the sentence."""

import math

import numpy as np
import pytest
import torch
from expect import refuses

from fedlib import checks

NUMBER_CHECKS = {
    "number": lambda v: checks.number("A", "b", v),
    "positive": lambda v: checks.positive("A", "b", v),
    "nonnegative": lambda v: checks.nonnegative("A", "b", v),
    "at_least": lambda v: checks.at_least("A", "b", v, 1),
    "in_range": lambda v: checks.in_range("A", "b", v, 0, 10),
    "count": lambda v: checks.count("A", "b", v),
}


@pytest.mark.parametrize("check", NUMBER_CHECKS.values(), ids=NUMBER_CHECKS)
class TestEveryNumberCheck:
    @pytest.mark.parametrize("value", [1, 5, np.int64(2)])
    def test_passes_a_good_number(self, check, value):
        assert check(value) is None

    @pytest.mark.parametrize("value", [True, False, "3", None, [1], 1j])
    def test_refuses_what_is_no_number(self, check, value):
        with pytest.raises(TypeError, match=r"^A: b must be .*, got .*\.$"):
            check(value)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
    def test_refuses_nan_and_infinities(self, check, value):
        with pytest.raises((ValueError, TypeError), match=r"^A: b must .*, got .*(nan|inf).*\.$"):
            check(value)

    @pytest.mark.parametrize("value", [-1.0, math.nan, 7.5])
    def test_lets_a_tensor_pass(self, check, value):
        assert check(torch.tensor(value)) is None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: checks.count("FedSGM", "participants", 25, 1, 20, "the problem's clients"),
            "FedSGM: participants must lie in 1..20 (the problem's clients), got 25.",
        ),
        (
            lambda: checks.in_range("FedSGM", "participants", 25, 1, 20, note="the clients"),
            "FedSGM: participants must lie in 1..20 (the clients), got 25.",
        ),
        (lambda: checks.count("A", "n", 0), "A: n must be at least 1, got 0."),
        (lambda: checks.positive("A", "lr", 0), "A: lr must be positive, got 0."),
        (lambda: checks.nonnegative("A", "x", -0.5), "A: x must be nonnegative, got -0.5."),
        (lambda: checks.at_least("A", "x", 1, 2), "A: x must be at least 2, got 1."),
        (
            lambda: checks.in_range("A", "x", 0, 0, 1, open_low=True),
            "A: x must lie in (0, 1], got 0.",
        ),
        (
            lambda: checks.in_range("A", "x", 1.0, 0, 1, open_high=True),
            "A: x must lie in [0, 1), got 1.0.",
        ),
        (lambda: checks.number("A", "x", math.nan), "A: x must be a finite number, got nan."),
        (
            lambda: checks.one_of("A", "mode", "c", ("a", "b")),
            "A: mode must be one of 'a', 'b', got 'c'.",
        ),
        (
            lambda: checks.finite("A", "X", torch.tensor([1.0, math.nan, math.inf]), "impute them"),
            "A: X must be finite, got 2 of 3 entries NaN or infinite; impute them.",
        ),
        (
            lambda: checks.labels01("A", "y", torch.tensor([0, 1, 2]), "choose a class"),
            "A: y must be 0 or 1, found values {0, 1, 2}; choose a class.",
        ),
    ],
)
def test_sentence(call, text):
    with pytest.raises(ValueError, match=r"\.$") as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: checks.count("A", "n", 3.0), "A: n must be a whole number, at least 1, got 3.0."),
        (
            lambda: checks.count("A", "n", 2.0, high=4),
            "A: n must be a whole number, 1..4, got 2.0.",
        ),
        (
            lambda: checks.positive("A", "lr", "1"),
            "A: lr must be a number and be positive, got '1'.",
        ),
        (lambda: checks.finite("A", "X", [1.0]), "A: X must be a torch.Tensor, got [1.0]."),
        (lambda: checks.labels01("A", "y", [1]), "A: y must be a torch.Tensor, got [1]."),
    ],
)
def test_type_sentence(call, text):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == text


def test_ends_of_a_range():
    checks.in_range("A", "x", 0, 0, 1)
    checks.in_range("A", "x", 1, 0, 1)
    checks.in_range("A", "x", 0.5, 0, 1, open_low=True, open_high=True)
    for value in (-1e-12, 1 + 1e-12):
        refuses("must lie in", checks.in_range, "A", "x", value, 0, 1)
    checks.count("A", "n", 4, 1, 4)
    checks.count("A", "n", 0, low=0)


def test_one_of_does_not_take_true_for_one():
    checks.one_of("A", "x", 1, (1, 7))
    refuses("must be one of 1, 7, got True", checks.one_of, "A", "x", True, (1, 7))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.uint8])
def test_labels_and_finite_take_every_dtype(dtype):
    labels = torch.tensor([0, 1, 1]).to(dtype)
    checks.labels01("A", "y", labels)
    checks.finite("A", "y", labels)


def test_nan_labels_are_refused():
    refuses("must be 0 or 1", checks.labels01, "A", "y", torch.tensor([0.0, math.nan]))


def test_a_long_value_is_cut_to_one_line():
    text = checks.sentence("A", "x", "be short", list(range(100)))
    assert len(text) < 100
    assert "\n" not in checks.sentence("A", "x", "be short", "a\nb")


def test_a_number_check_under_vmap():
    def scaled(lr):
        checks.positive("A", "lr", lr)
        return 2 * lr

    assert torch.func.vmap(scaled)(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
