"""A link inside of one process, on which faults can be planted, and what a run must end with."""

from collections import deque
from unittest.mock import patch

import torch

from fedlib.flower.client import Client
from fedlib.flower.job import Job, client_problem
from tests.helpers.rounds import walk


class Wires:
    """Clients on one's own thread. `faults`: (client, number of its request) -> what happens."""

    def __init__(self, job, clients, faults=()):
        self.job = job
        self.faults = dict(faults)
        self.clients = {j: Client(job, j) for j in range(clients)}
        self.requests = dict.fromkeys(range(clients), 0)
        self.queue = deque()
        self.answered = {}
        self.happened = []

    def send(self, j, data):
        self.requests[j] += 1
        fault = self.faults.pop((j, self.requests[j]), "")
        if fault:
            self.happened.append(fault)
        if j not in self.clients or fault == "gone":
            self.clients.pop(j, None)
            return None
        if fault == "dies before":
            return self.restart(j)
        if fault == "fails":
            with patch.object(
                self.clients[j],
                "follow",
                side_effect=OSError("no space left"),
            ):
                return self.queue.append((j, self.clients[j].handle(data)))
        if fault == "garbled request":
            data = data[:-1] + b"?"
        answer = self.clients[j].handle(data)
        if fault == "dies after":
            return self.restart(j)
        if fault == "not delivered":
            return self.queue.append((j, None))
        if fault == "stale":
            self.queue.append((j, self.answered.get(j, b"")))
        changed = {"truncated": answer[:-3], "foreign": b"GET / HTTP/1.1", "empty": b""}
        self.queue.append((j, changed.get(fault, answer)))
        if fault == "twice":
            self.queue.append((j, answer))
        self.answered[j] = answer
        return None

    def restart(self, j):
        self.clients[j] = Client(self.job, j)
        self.queue.append((j, self.clients[j].hello()))

    def receive(self, seconds):  # noqa: ARG002 - no deadline is waited for
        return self.queue.popleft() if self.queue else None


def job_of(algorithm, problem, rounds):
    return Job(algorithm, lambda client: client_problem(problem, client), rounds)


def simulated(algorithm, problem, rounds):
    """The last state of a simulation."""
    state = algorithm.init(problem)
    for _, _, next_state, _ in walk(algorithm, problem, rounds):
        state = next_state
    return state


def apart(a, b):
    return float((a - b).abs().max()) if a.numel() else 0.0


def memories(state, j, tables):
    """What client j remembers."""
    rows = [getattr(state, name)[j].flatten() for name in tables]
    return torch.cat(rows) if rows else torch.zeros(0)
