"""Work that switches between objectives and constraints, with compression both ways."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.compress.compressors import Compressor, Identity, check_compressors
from fedlib.core.client import Client, ClientState, Reply
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Problem
from fedlib.shapes import PerLoss, Scalar, Vector
from fedlib.steps.switching import Hard, Switch
from fedlib.work.local import LocalWork


class SwitchingWork(LocalWork):
    """Base of methods that switch between objectives and constraints.

    The numbers in its comments are lines of the pseudocode, the same for all these methods. The
    state of a method has the fields that `start` names.

    Parameters
    ----------
    tolerance : float
        epsilon; the method switches where the constraint exceeds `level` by more than this number.
    level : float
        c in the constraint `g <= c`.
    switch : Switch
        Rule for sigma, the share of the constraint in a round.
    uplink : Compressor
        The clients' compressor C_j.
    downlink : Compressor
        The server's compressor C_0.
    error_feedback : bool
        Whether clients keep what the uplink dropped.
    resample_for_update : bool
        Whether a second, independent sample of clients sends the constraint values.
    """

    tolerance: float
    level: float = 0.0
    switch: Switch = Hard()
    uplink: Compressor = Identity()
    downlink: Compressor = Identity()
    error_feedback: bool = True
    resample_for_update: bool = False

    def start(self, problem: Problem) -> dict[str, Tensor]:
        """Check the compressors; return the first fields of the state, with empty memories."""
        name = type(self).__name__
        check_compressors(name, self.uplink, self.downlink, self.error_feedback, problem.dim)
        w = problem.w0
        memory = 0
        if self.remembers:
            memory = problem.dim
        return {
            "w": w,
            "x": w,
            "residual": w.new_zeros(problem.num_clients, memory),
            "weighted": torch.zeros_like(w),
            "weight": w.new_zeros(()),
        }

    @property
    def remembers(self) -> bool:
        """Whether clients need a memory, for what the uplink drops and they send later."""
        return self.error_feedback and not isinstance(self.uplink, Identity)

    def sampling(self) -> dict[str, Any]:
        """The arguments of `draw_round`."""
        return {
            **super().sampling(),
            "uplink": self.uplink,
            "downlink": self.downlink,
            "resample": self.resample_for_update,
        }

    def constraint_value(self, client: Client) -> Float[Tensor, "*s"]:
        """At the client: return g_j(w), or the statistics for it."""
        return client.constraint(client.model, client.value_batch())  # 2

    def compressed_update(
        self,
        client: Client,
        weights: PerLoss,
    ) -> Vector | Reply:
        """At the client: make E local steps, then compress the sum of their directions."""
        w = client.model  # 4
        u = self.local_model(client, w, weights)  # 5
        delta = (w - u) / self.lr  # 6
        if not self.remembers:
            return self.uplink(delta, client.noise)
        v = self.uplink(client.memory + delta, client.noise)  # 7
        return Reply(upload=v, memory=client.memory + delta - v)  # 7

    def server_step(
        self,
        fed: Federation,
        state: Any,
        draw: Draw,
        clients: ClientState,
        answers: Any,
        sigma: Scalar,
    ) -> Any:
        """Step along the mean of what the clients sent, and send the change of the model."""
        w = state.w
        v = answers
        residual = state.residual
        if self.remembers:
            v, e = answers
            residual = fed.store_memory(residual, draw, e)
        mean_step = fed.mean(v, clients)
        x = fed.project(state.x - self.lr * mean_step)  # 8
        return state._replace(
            w=w + fed.broadcast(self.downlink, x - w, draw.downlink),  # 9
            x=x,
            residual=residual,
            weighted=state.weighted + (1 - sigma) * w,  # 10
            weight=state.weight + (1 - sigma),
        )

    def output(self, state: Any) -> Vector:
        """The averaged iterate `[d]`; NaN if no round stepped on the objectives."""
        average: Vector = state.weighted / state.weight  # 10
        return average
