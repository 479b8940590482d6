"""Who looks for a client's picture in the study of leakage.

Zhu, Liu, Han, *Deep Leakage from Gradients*, NeurIPS 2019. Dadras et al., *Federated Frank-Wolfe
Algorithm*, ECML PKDD 2024, Figure 1: oracle answers in place of gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fedlib.core import Problem
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from papers.fedfw.leakage.gradients import (
    Oracle,
    Signal,
    SmoothL1,
    Whole,
    attack,
    leaked_gradient,
)
from papers.fedfw.leakage.problem import Network, dummies


class State(NamedTuple):
    """What an attacker carries: the picture so far, and what it will find."""

    w: Tensor  # [p] the picture
    path: Tensor  # [steps, p] after each step, once the attack is done
    mismatch: Tensor  # [steps] of the messages, relative
    t: Tensor  # rounds done


@dataclass(frozen=True)
class Attacker:
    """Deep leakage: the pictures that L-BFGS goes through, a step a round.

        1  in round 1: the client sends signal(gradient at its picture); from random dummies L-BFGS
           makes |guess(gradient at the dummies) - message|^2 small, `steps` times
        2  in round t: w is the dummy picture after t of them

    Info: `mismatch`, the squared distance of the messages over the squared length of the client's.

    Parameters
    ----------
    network, signal : the model, and what the client sends of its gradient.
    guess : what the attacker takes for it, if something else.
    steps : as many as there are rounds.

    Differs: a picture that overflows is replaced by the last one that did not. Works on a CPU, one
    seed after another.
    """

    network: Network
    signal: Whole | Oracle | SmoothL1
    guess: SmoothL1 | None = None
    steps: int = 100

    def init(self, problem: Problem) -> State:
        w = problem.w0
        return State(w, w.repeat(self.steps, 1), w.new_zeros(self.steps), w.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        del rng
        return Draw(torch.arange(problem.num_clients))

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        del draw
        t = int(state.t)
        if t == 0:
            state = self.search(fed.problem, state)
        at = min(t, self.steps - 1)
        new = state._replace(w=state.path[at], t=state.t + 1)
        return new, fed.info(mismatch=state.mismatch[at])

    def search(self, problem: Problem, state: State) -> State:
        truth, label, weights, number = problem.heldout
        guesses, mismatch = attack(
            self.network,
            weights,
            truth,
            one_hot(label),
            signal=self.signal,
            guess=self.guess or self.signal,
            rng=dummies(number),
            steps=self.steps,
        )
        sent = message(self.network, self.signal, problem)
        path, last = [], state.w
        for picture in guesses[1:]:
            last = picture.flatten() if bool(picture.isfinite().all()) else last
            path.append(last)
        apart = mismatch[1:] / sent.square().sum()
        return state._replace(path=torch.stack(path), mismatch=apart)


def message(network: Network, signal: Signal, problem: Problem) -> Tensor:
    truth, label, weights, _ = problem.heldout
    return signal(leaked_gradient(network, weights, truth, one_hot(label)).detach())


def one_hot(label: Tensor) -> Tensor:
    return nn.functional.one_hot(label, 10).double()
