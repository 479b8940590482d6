"""The compressed penalty is Penalty-FedAvg without compressors; measures and null data by hand."""

from torch.testing import assert_close

import fedlib as fl
from fedlib.steps import Hard
from papers.fedsgm.np_protocol.runs import CompressedPenalty


def test_without_compressors_it_is_penalty_fedavg():
    settings = {"lr": 0.1, "local_steps": 3, "participants": 4, "tolerance": 0.02}
    ours = CompressedPenalty(**settings, switch=Hard(), rho=2.5)
    library = fl.PenaltyFedAvg(**settings, rho=2.5)
    task = fl.problems.quadratics()
    trace = fl.run(ours, task, rounds=12, progress=False)
    expected = fl.run(library, task, rounds=12, progress=False)
    assert {*trace.info["sigma"].flatten().tolist()} == {0.0, 1.0}
    assert_close(trace.state.w, expected.state.w, rtol=1e-5, atol=1e-6)
