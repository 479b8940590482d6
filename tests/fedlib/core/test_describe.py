"""Descriptions outlive renames: a stored run is found under the first names of class and fields."""

from dataclasses import dataclass, field

import pytest

from fedlib.core.describe import added_field, describe, renamed_from
from tests.helpers.expect import refuses


@dataclass(frozen=True)
class Switch:
    beta: float = 2.0


@dataclass(frozen=True)
class Method:
    lr: float
    tolerance: float
    switch: Switch = Switch()
    steps: int = 1


@renamed_from("Switch")
@dataclass(frozen=True)
class SoftSwitch:
    slope: float = field(default=2.0, metadata={"renamed_from": "beta"})


@renamed_from("Method")
@dataclass(frozen=True)
class SwitchedMethod:
    lr: float
    epsilon: float = field(metadata={"renamed_from": "tolerance"})
    switch: SoftSwitch = SoftSwitch()
    steps: int = 1
    momentum: float = added_field(0.0)


BEFORE = {
    "type": "Method",
    "lr": 0.1,
    "tolerance": 0.05,
    "switch": {"type": "Switch", "beta": 3.0},
    "steps": 1,
}


def test_a_renamed_class_with_renamed_and_added_fields_is_described_as_before():
    assert describe(Method(0.1, 0.05, Switch(3.0))) == BEFORE
    renamed = SwitchedMethod(lr=0.1, epsilon=0.05, switch=SoftSwitch(slope=3.0))
    assert describe(renamed) == BEFORE


def test_an_added_field_counts_when_it_is_not_its_default():
    changed = SwitchedMethod(0.1, 0.05, SoftSwitch(3.0), momentum=0.5)
    assert describe(changed) == {**BEFORE, "momentum": 0.5}


def test_a_subclass_of_a_renamed_class_has_its_own_name_and_the_first_names_of_its_fields():
    @dataclass(frozen=True)
    class Faster(SwitchedMethod):
        pass

    assert describe(Faster(0.1, 0.05, SoftSwitch(3.0))) == {**BEFORE, "type": "Faster"}


@pytest.mark.parametrize("method", [Method(0.1, 0.05), SwitchedMethod(0.1, 0.05)])
def test_omitted_fields_are_named_as_the_code_names_them(method):
    tolerance = "tolerance" if isinstance(method, Method) else "epsilon"
    beta = "switch.beta" if isinstance(method, Method) else "switch.slope"
    left = describe(method, omit=["lr", tolerance, beta])
    assert left == {"type": "Method", "switch": {"type": "Switch"}, "steps": 1}


def test_a_new_field_may_not_take_the_first_name_of_another():
    @dataclass(frozen=True)
    class Method:
        epsilon: float = field(metadata={"renamed_from": "tolerance"})
        tolerance: float = 1.0

    refuses(
        "the fields of Method must have first names of their own, got 'tolerance' twice",
        describe,
        Method(0.1),
    )


class Plain:
    """A rule that is no dataclass."""


@dataclass(frozen=True)
class Holder:
    rule: object
    sizes: tuple[object, ...] = ()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Holder(Plain()), "Holder.rule must be *write @dataclass(frozen=True) above class Plain"),
        (Holder(Holder(Plain)), "Holder.rule must be *pass an object of a dataclass"),
        (Holder(1, (2, Plain())), "Holder.sizes[1] must be a number, a text"),
        ({"a": {"b": {1}}}, "value['a']['b'] must be a number"),
    ],
)
def test_what_cannot_be_described_is_named(value, words):
    refuses(f"describe: {words}", describe, value, error=TypeError)
