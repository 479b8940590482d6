"""The line that every message of a vertical federation crosses."""

from typing import cast

import torch

from fedlib import checks
from fedlib.compress.wire import FLOAT_BITS
from fedlib.core.federation import SERVER, Federation, count_numbers
from fedlib.core.problem import Info, Problem
from fedlib.shapes import AnyTensor
from fedlib.vertical.problem import VerticalProblem

INDEX_BITS = 32  # bits of a sample's number on the wire
Pieces = tuple[AnyTensor, ...]


class Line:
    """The messages of one round between the server and the clients, and their bits.

    A number counts 32 bits. `fed`, the round's federation with a `VerticalProblem`, counts messages
    from and to the server; `bits_between` counts those from client to client. The federation's log
    receives every message.
    """

    def __init__(self, fed: Federation) -> None:
        self.fed = fed
        self.bits_between = 0
        self.problem = check_vertical("Line", fed.problem)

    def to_client(
        self,
        client: int,
        title: str,
        *tensors: AnyTensor,
    ) -> Pieces:
        """Send from the server to one client."""
        self.fed.bits_down += self._send(SERVER, f"client {client}", title, tensors)
        return tensors

    def to_server(
        self,
        client: int,
        title: str,
        *tensors: AnyTensor,
    ) -> Pieces:
        """Send from one client to the server."""
        self.fed.bits_up += self._send(f"client {client}", SERVER, title, tensors)
        return tensors

    def to_others(
        self,
        client: int,
        title: str,
        *tensors: AnyTensor,
    ) -> Pieces:
        """Send from one client to every other client."""
        for receiver in self.problem.composite.numbers:
            if receiver != client:
                bits = self._send(
                    f"client {client}",
                    f"client {receiver}",
                    title,
                    tensors,
                )
                self.bits_between += bits
        return tensors

    def info(self, **metrics: AnyTensor) -> Info:
        """The round's report: `metrics`, and the bits that were sent in the round."""
        report = self.fed.info(**metrics)
        zero = torch.zeros_like(report["bits_up"])
        report["bits_between"] = zero + self.bits_between
        return report

    def _send(
        self,
        sender: str,
        receiver: str,
        title: str,
        tensors: Pieces,
    ) -> int:
        """Note a message in the federation's log, if it has one; return the message's bits."""
        floats, indices = count_numbers(tensors)
        bits = FLOAT_BITS * floats + INDEX_BITS * indices
        self.fed.note(sender, receiver, title, tensors, bits)
        return bits


def check_vertical(subject: str, problem: Problem) -> VerticalProblem:
    """Return the problem; raise TypeError unless its features are divided among clients."""
    checks.value(subject, "problem", problem, VerticalProblem)
    return cast("VerticalProblem", problem)
