"""A mod of Flower between a client's answer and the server, where the method needs a sum alone."""

from types import SimpleNamespace

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, RecordDict
from flwr.clientapp.mod import LocalDpMod

from fedlib import SSCA, PowerLaw
from fedlib.compress.compressors import Identity
from fedlib.flower.job import disclose, enclose
from fedlib.flower.packing import receive, send
from fedlib.flower.server import Server
from fedlib.testing.examples import classification
from tests.helpers.wires import Wires, apart, job_of, simulated

LAW = PowerLaw(0.6, 0.3)
METHOD = SSCA(1.0, LAW, LAW, batch_size=10)
PROBLEM = classification(4)
ROUNDS = 5


class Through(Wires):
    """Every answer passes through a mod, as an update of nothing."""

    def __init__(self, mod, *arguments):
        super().__init__(*arguments)
        self.mod = mod
        self.sent = []

    def send(self, j, data):
        super().send(j, data)
        client, answer = self.queue.pop()
        head, tensors = disclose(answer)
        if tensors and tensors[0]:
            tensors = [self.noised(tensors[0])]
        self.queue.append((client, enclose(head, tensors)))

    def noised(self, data):
        template = torch.zeros(len(data) // 4, dtype=torch.float64)
        upload = receive(Identity(), data, template).numpy()

        question = message_of(np.zeros_like(upload))
        answer = self.mod(question, None, lambda *_: message_of(upload))
        (changed,) = answer.content["sum"].to_numpy_ndarrays()
        self.sent.append(changed)
        return send(Identity(), torch.from_numpy(changed))


def message_of(array):
    """What a mod looks at of a message, which can be made inside a task of Flower alone."""
    content = RecordDict({"sum": ArrayRecord({"sum": Array(array)})})
    return SimpleNamespace(content=content, has_error=lambda: False)


def clipped(most):
    """What was sent, and how far the last model is from that of a simulation."""
    mod = LocalDpMod(most, 0.0, 1.0, 1e-5)
    wires = Through(mod, job_of(METHOD, PROBLEM, ROUNDS), 4)
    state = Server(wires.job, wires).run()
    plain = simulated(METHOD, PROBLEM, ROUNDS)
    return wires.sent, apart(state.w, plain.w)


def test_flowers_clipping_fits_the_sums_of_ssca():
    sent, difference = clipped(1e6)
    assert len(sent) == 4 * ROUNDS
    assert difference < 1e-6
    sent, difference = clipped(0.01)
    np.testing.assert_allclose(np.linalg.norm(sent, axis=1), 0.01, rtol=1e-6)
    assert difference > 1e-3
