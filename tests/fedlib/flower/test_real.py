"""The example's methods on a real SuperLink and four SuperNodes of this machine, with TLS and keys.

Not among the other tests of a directory: `make federation`, every week. That a federation is the
simulation is held of every method, without processes, in the other tests of this folder.
"""

import os

import pytest

from tests.helpers.real_federation import APP, NODES, made, methods, result, submit, wait
from tests.helpers.superlink import federation

ROUNDS = 2  # what goes wrong with a memory shows in the second
pytestmark = pytest.mark.flower


def drawn(names):
    """All, or the first and as many of the others as are asked for."""
    count = int(os.environ.get("DRAW") or len(names))
    return [*names][: 1 + count]


def test_methods_run_as_in_the_simulation_and_send_the_counted_bits(tmp_path):
    known = methods()
    names = drawn(known)
    assert (APP / "pyproject.toml").exists()
    with federation(tmp_path, NODES, secure=True) as fed:
        submit(fed, made(tmp_path), names, ROUNDS)
        fed.start_node(NODES, known=False)  # nobody has told the SuperLink its key
        assert fed.processes[f"node-{NODES}"].wait(600) == 1
        log = (tmp_path / f"node-{NODES}.log").read_text(encoding="utf-8")
        assert "Failed to activate SuperNode" in log
        assert wait(tmp_path, names, ROUNDS, 600) == []
    for name in names:
        method, problem = known[name]
        report = result(tmp_path, name, method, problem())
        assert report["rounds"] == ROUNDS, name
        assert report["difference"] < 1e-6, name
        assert report["in_bytes"] < 1e-9, name
        messages = 8 * NODES * ROUNDS
        for direction in ("up", "down"):
            assert 0 <= 8 * report["bytes"][direction] - report["bits"][direction] < 8 * messages, (
                name
            )
