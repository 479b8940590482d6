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
    def test_lets_a_tensor_pass_for_a_number(self, request, check, value):
        if "count" in request.node.callspec.id:
            refuses("be a whole number", check, torch.tensor(value), error=TypeError)
        else:
            assert check(torch.tensor(value)) is None

    @pytest.mark.parametrize("value", [torch.ones(2), torch.tensor(True), np.array(1.0)])
    def test_refuses_other_arrays(self, check, value):
        refuses("must be a", check, value, error=TypeError)

    def test_refuses_what_no_float_holds(self, check):
        if check is not NUMBER_CHECKS["count"]:
            refuses("must", check, 10**400)


def says(text, check, *arguments, error=ValueError, **options):
    """The whole sentence of a check that refuses."""
    with pytest.raises(error) as caught:
        check("A", *arguments, **options)
    assert str(caught.value) == f"A: {text}"


def test_sentence():
    clients = ("n", 25, 1, 20)
    says("n must lie in 1..20 (the clients), got 25.", checks.count, *clients, "the clients")
    says("n must lie in 1..20 (the rows), got 25.", checks.in_range, *clients, note="the rows")
    says("n must be at least 1, got 0.", checks.count, "n", 0)
    says("lr must be positive, got 0.", checks.positive, "lr", 0)
    says("x must be nonnegative, got -0.5.", checks.nonnegative, "x", -0.5)
    says("x must be at least 2, got 1.", checks.at_least, "x", 1, 2)
    says("x must lie in (0, 1], got 0.", checks.in_range, "x", 0, 0, 1, open_low=True)
    says("x must lie in [0, 1), got 1.0.", checks.in_range, "x", 1.0, 0, 1, open_high=True)
    says("x must be a finite number, got nan.", checks.number, "x", math.nan)
    says("mode must be one of 'a', 'b', got 'c'.", checks.one_of, "mode", "c", ("a", "b"))
    text = "X must be finite, got 2 of 3 entries NaN or infinite; impute them."
    says(text, checks.finite, "X", torch.tensor([1.0, math.nan, math.inf]), "impute them")
    text = "y must be 0 or 1, found values {0, 1, 2}; choose a class."
    says(text, checks.labels01, "y", torch.tensor([0, 1, 2]), "choose a class")


def test_type_sentence():
    kind = {"error": TypeError}
    says("n must be a whole number, at least 1, got 3.0.", checks.count, "n", 3.0, **kind)
    says("n must be a whole number, 1..4, got 2.0.", checks.count, "n", 2.0, high=4, **kind)
    says("lr must be a positive number, got '1'.", checks.positive, "lr", "1", **kind)
    says("X must be a torch.Tensor, got [1.0].", checks.finite, "X", [1.0], **kind)
    says("y must be a torch.Tensor, got [1].", checks.labels01, "y", [1], **kind)


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
