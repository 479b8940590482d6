"""Fixtures that many tests share."""

import gc
import importlib
import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from fedlib import data
from tests.helpers.problems import np_problem

ROOT = Path(__file__).resolve().parents[1]
collect_ignore = ["helpers/federation_app"]  # an app of Flower, whose modules lie elsewhere

#: Drawn examples: a few in the suite, always the same; a thousand with `--hypothesis-profile=many`.
COMMON = {"deadline": None, "database": None}
settings.register_profile("suite", max_examples=30, derandomize=True, **COMMON)
settings.register_profile("many", max_examples=1000, print_blob=True, **COMMON)
settings.load_profile("suite")


def pytest_configure():
    """Let Python look for garbage rarely: what is imported and loaded stays, and is much."""
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_finish():
    """Never look for garbage among what was imported."""
    gc.freeze()


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


@pytest.fixture(scope="session")
def judged():
    """What every reading of every claim says of the stored runs; see `papers.all_outcomes`."""
    import papers  # tests of the library do without

    return papers.all_outcomes()
