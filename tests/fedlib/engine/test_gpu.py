"""A GPU gives what the CPU gives: it sees the same clients and batches."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.engine.checkpoint import read_sealed, write_sealed
from fedlib.problems import classifier
from fedlib.problems.classification import Samples, linear_model
from fedlib.run import resolve_device
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.simulator import cartpole
from tests.helpers.problems import np_problem
from tests.helpers.randoms import uniform

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA GPU, and torch finds none here"
)

SGM = fl.FedSGM(
    lr=0.1,
    local_steps=5,
    participants=10,
    tolerance=0.05,
    uplink=fl.TopK(0.2),
    downlink=fl.TopK(0.2),
)
AVERAGING = fl.FedAvg(lr=0.1, local_steps=2, participants=5, batch_size=8)


def single(seed):
    return np_problem(seed, dtype=torch.float32)


def digits(seed):
    rows = Samples(uniform(200, 12, seed=seed).float(), torch.arange(200) % 4)
    return classifier(rows, rows, torch.arange(200).view(10, 20), linear_model(12, 4))


METHODS = {
    "hard": (SGM, single),
    "soft": (replace(SGM, switch=fl.Soft(40.0)), single),
    "minibatch": (AVERAGING, digits),
    "grid": ([SGM, replace(SGM, lr=0.05)], single),
}


def go(device, name="hard", rounds=12, **options):
    """The traces of a run on a device."""
    result = fl.run(
        *METHODS[name],
        rounds=rounds,
        seeds=[0, 1],
        device=device,
        **options,
    )
    return result if isinstance(result, list) else [result]


def assert_same(actual, expected):
    for trace, expected_trace in zip(actual, expected, strict=True):
        curves = trace.metrics | trace.info
        for name, values in (expected_trace.metrics | expected_trace.info).items():
            np.testing.assert_allclose(
                curves[name],
                values,
                rtol=1e-5,
                atol=1e-5,
                err_msg=name,
            )
        assert trace.state.w.device.type == "cpu"  # a trace lies on the CPU
        torch.testing.assert_close(
            trace.state.w,
            expected_trace.state.w,
            rtol=1e-5,
            atol=1e-5,
        )


@pytest.mark.parametrize("name", METHODS)
def test_the_gpu_run_equals_the_cpu_run(name):
    assert_same(go("cuda", name), go("cpu", name))


def simulated(seed):
    return cartpole(seed, clients=3, environments=2, evaluation=4)


def test_the_first_round_of_simulated_clients_is_that_of_the_cpu():
    """One round only: simulations are chaotic, and sums in another order differ in the last bit."""
    method = PolicyFedSGM(
        participants=2,
        tolerance=0.0,
        switch=fl.Soft(0.2),
        uplink=fl.TopK(0.5),
        cg_steps=4,
    )
    cpu = fl.run(
        method,
        simulated,
        rounds=1,
        seeds=[0, 1],
        device="cpu",
    )
    gpu = fl.run(
        method,
        simulated,
        rounds=1,
        seeds=[0, 1],
        device="cuda",
    )
    starts = torch.stack([simulated(seed).w0 for seed in (0, 1)])
    moved = float((cpu.state.w - starts).abs().max())
    torch.testing.assert_close(cpu.state.w, gpu.state.w, atol=0.02 * moved, rtol=0)
    np.testing.assert_allclose(cpu.info["g_hat"], gpu.info["g_hat"], atol=0.6)


def test_auto_takes_the_gpu():
    assert resolve_device("auto").type == "cuda"
    (trace,) = go("auto", rounds=2)
    assert trace.provenance["device"] == torch.cuda.get_device_name()


def test_a_checkpoint_of_the_gpu_resumes_on_the_cpu(tmp_path):
    path = tmp_path / "run.pt"
    go("cuda", rounds=6, checkpoint=path)
    content = read_sealed(path)
    assert content["round"] == 6
    assert {x.device.type for x in content["state"]} == {"cpu"}
    # as if the run of twelve rounds had been killed here
    content["config"] = content["config"].replace('"rounds": 6', '"rounds": 12')
    write_sealed(path, content)
    assert_same(go("cpu", checkpoint=path), go("cpu"))
