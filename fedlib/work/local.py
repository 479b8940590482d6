"""Local work: a sample of clients makes local steps in every round."""

from typing import Any

from fedlib import checks
from fedlib.core.client import Client
from fedlib.core.problem import Problem
from fedlib.core.sampling import Sampled, check_work
from fedlib.shapes import PerLoss, Vector
from fedlib.steps.local import SGD, LocalSteps
from fedlib.work.states import Model


class LocalWork(checks.Checked, Sampled):
    """Base of methods in which a sample of clients makes local steps in every round.

    A method derives from it as a frozen dataclass, repeats the fields that it needs, and defines
    `round` with the clients' methods that it asks for.

    Parameters
    ----------
    lr : float
        Step size of the local steps.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    batch_size : int or None
        Number of rows in the minibatch of a local step; None for all rows of the client.
    value_batch_size : int or None
        Number of rows in a separate batch for loss values; None for all rows of the client.
    local : LocalSteps
        Rule for the local steps, `SGD()` or `Adam()`.
    """

    lr: float
    local_steps: int
    participants: int
    batch_size: int | None = None
    value_batch_size: int | None = None
    local: LocalSteps = SGD()

    def init(self, problem: Problem) -> Any:
        """Check that the problem has enough clients; return the first state."""
        check_work(type(self).__name__, problem, self.participants)
        return Model(problem.w0)

    def sampling(self) -> dict[str, Any]:
        """The arguments of `draw_round`."""
        return {  # 1
            "participants": self.participants,
            "local_steps": self.local_steps,
            "batch_size": self.batch_size,
            "value_batch_size": self.value_batch_size,
        }

    def local_model(
        self,
        client: Client,
        w: Vector,
        weights: PerLoss,
    ) -> Vector:
        """At the client: the model after E local steps from `w` on `weights @ losses`.

        Every step takes a batch of its own. For another direction, call `self.local` with a
        function of the point and the step, as this method does.
        """

        def gradient(u: Vector, step: int) -> Vector:
            return client.gradient(u, client.batch(step), weights)

        return self.local(w, gradient, self.local_steps, self.lr)
