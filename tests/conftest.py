"""Fixtures that many tests share."""

import importlib
import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from problems import np_problem

from fedlib import data

ROOT = Path(__file__).resolve().parents[1]

#: Known faults: a vertex of the l1 ball and the weights of clients with unequal rows pass through
#: float32 (6e-8 and 3e-8 off in float64), and two logits start with the bias of a log deviation. To
#: mend them is to compute again the stored runs that they are behind. Each test here must fail
#: until that is done, and then leaves this list.
KNOWN = (
    *(f"test_a_function_stays_in_float64_and_agrees_with_float32[{x}]" for x in ("l1", "blocks")),
    "test_a_function_stays_in_float64_and_agrees_with_float32[l1, again]",
    "test_a_function_stays_in_float64_and_agrees_with_float32[blocks, again]",
    *(
        f"test_a_problem_stays_in_float64_and_agrees_with_float32[{x}]"
        for x in ("classifier", "fairness", "own")
    ),
    *(
        f"test_a_vertex_has_the_radius_in_its_own_dtype[dtype2-{x}]"
        for x in ("0.1", "0.3333333333333333", "1e-06")
    ),
    "test_a_seed_alone_is_the_seed_among_others_where_clients_have_unequal_rows",
    "test_weights_of_rows_are_made_in_the_dtype_of_the_model",
    "test_an_oracle_attains_the_support_function",
    "test_two_logits_start_as_a_fair_coin",  # not float32: the bias of a log deviation
)


def pytest_collection_modifyitems(items):
    """Known faults are expected, strictly."""
    for item in items:
        if item.name in KNOWN:
            item.add_marker(pytest.mark.xfail(reason="known, and waits for its runs"))


#: Drawn examples: a few in the suite, always the same; a thousand with `--hypothesis-profile=many`.
COMMON = {"deadline": None, "database": None}
settings.register_profile("suite", max_examples=30, derandomize=True, **COMMON)
settings.register_profile("many", max_examples=1000, print_blob=True, **COMMON)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def problem():
    """20 clients, 80 % of breast cancer, float64."""
    return np_problem()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def real(monkeypatch):
    """Use the real data; gives a function that skips when the cache lacks one of some sets."""
    folder = Path(os.environ.get("FEDLIB_DATA") or ROOT.parent / "shared" / "data").resolve()
    if not folder.is_dir():
        pytest.skip("no folder of real data: set FEDLIB_DATA to one")
    monkeypatch.setenv("FEDLIB_DATA", str(folder))

    def need(*names):
        for name in names:
            if not data.available(name):
                pytest.skip(f"{name} is not in the data cache")
        return folder

    return need


@pytest.fixture(scope="module")
def driver():
    """The program that executes the notebooks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "notebooks")
        yield importlib.import_module("execute")
