"""FedSGM with policy steps: one round by hand, both engines, the trust region, and learning."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib.core.sampling import seeded
from papers.fedsgm.cartpole.method import SCALE, PolicyFedSGM
from papers.fedsgm.cartpole.simulator import cartpole
from papers.fedsgm.cartpole.trpo import (
    advantages,
    conjugate_gradient,
    cosine_features,
    normalized,
    ridge,
)
from tests.helpers.expect import close, refuses
from tests.helpers.problems import np_problem

ALGORITHM = PolicyFedSGM(participants=2, tolerance=0.0, switch=fl.Soft(0.2), cg_steps=4)


def small():
    return cartpole(0, clients=3, environments=2, evaluation=4)


def after_a_round(algorithm, problem):
    state = algorithm.init(problem)
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    return algorithm.round(fl.Vectorized(problem), state, draw)


def step_by_hand(sim, w, run, A, algorithm):
    """Natural gradient with the explicit Jacobian, and the line search as a loop."""
    states = run.states[:-1]
    flat = states.transpose(0, 1).flatten(0, 1)
    stride = len(flat) // algorithm.curvature_states
    sampled = flat[::stride][: algorithm.curvature_states]

    def surrogate(u):
        outputs = sim.policy(u, states)
        likelihood = sim.head.log_prob(outputs, run.action)
        return (likelihood * A).mean()

    gradient = torch.func.grad(surrogate)(w)
    ascent = algorithm.on_gradient(gradient)
    outputs = sim.policy(w, sampled)
    J = torch.func.jacrev(lambda u: sim.policy(u, sampled))(w)  # [100, 2, d]

    def fisher(v):
        curved = sim.head.fisher(outputs, J @ v)
        total = torch.einsum("bid,bi->d", J, curved)
        return total / len(sampled) + 0.1 * v

    s, remaining = conjugate_gradient(fisher, ascent, algorithm.cg_steps)
    curvature = s @ (ascent - remaining - 0.1 * s)
    scale = (2 * algorithm.kl_limit / curvature).sqrt()
    for i in range(6):
        move = 0.7**i * scale * s
        moved = sim.policy(w + move, sampled)
        divergence = sim.head.kl(outputs, moved).mean()
        if divergence <= algorithm.kl_limit:
            return move
    return torch.zeros_like(w)


@pytest.mark.parametrize("on_gradient", [fl.Identity(), fl.TopK(0.25)])
def test_a_round_equals_its_lines_done_one_by_one_for_every_client(on_gradient):
    problem = small()
    topk = fl.TopK(0.5)
    algorithm = replace(ALGORITHM, uplink=topk, downlink=topk, on_gradient=on_gradient)
    state, _ = after_a_round(algorithm, problem)
    draw = algorithm.draw(problem, seeded(9, "rounds"))
    reached, info = algorithm.round(fl.Vectorized(problem), state, draw)
    sim = problem.simulator
    w = state.w
    participants = draw.participants.tolist()
    runs = [sim.episodes(w, draw.chance[j]) for j in range(2)]
    budgets = problem.data[0][participants]
    costs = [run.per_episode(run.cost) for run in runs]
    violation = (torch.stack(costs) - budgets).mean()
    assert_close(info["g_hat"], violation)
    sigma = (1 + 0.2 * violation).clamp(0, 1)
    residual = state.residual.clone()
    messages = []
    critics = []
    for run, i in zip(runs, participants, strict=True):
        features = cosine_features(sim.inputs(run.states), state.basis)
        V = SCALE * features @ state.critics
        gains = [
            advantages(
                amount,
                V[..., k],
                run.ended,
                1.0,
                0.97,
            )
            for k, amount in enumerate((run.reward, run.cost))
        ]
        (rewards, reward_sums), (costs, cost_sums) = gains
        A = (1 - sigma) * normalized(rewards) - sigma * normalized(costs)
        change = residual[i] - step_by_hand(sim, w, run, A, algorithm)
        message = topk(change)
        residual[i] = change - message
        messages.append(message)
        targets = torch.stack([reward_sums, cost_sums], -1).flatten(0, 1)
        inputs = features[:-1].flatten(0, 1)
        critics.append(ridge(inputs, targets / SCALE, 1e-3))
    x = state.x - torch.stack(messages).mean(0)
    largest = float((x - state.x).abs().max())
    close(reached.x, x, 2e-3 * largest)
    close(reached.w, w + topk(x - w), 2e-3 * largest)
    close(reached.residual, residual, 2e-3 * largest)
    critic = torch.stack(critics).mean(0)
    assert_close(reached.critics, critic, atol=1e-3, rtol=1e-2)


def test_bits_are_counted_for_the_value_the_step_the_critics_and_the_policy():
    problem = small()
    algorithm = replace(ALGORITHM, uplink=fl.TopK(0.25))
    state, info = after_a_round(algorithm, problem)
    critics = 32 * state.critics.numel()
    step = algorithm.uplink.bits(problem.dim)
    assert info["bits_up"] == 2 * (32 + step + critics)
    assert info["bits_down"] == 2 * 32 + 3 * (critics + 32 * problem.dim)


def test_what_does_not_fit_the_problem_is_named():
    refuses("simulated", ALGORITHM.init, np_problem())
    beyond = replace(ALGORITHM, curvature_states=401)
    refuses("curvature_states must be at most the 400", beyond.init, small())
    replace(ALGORITHM, curvature_states=400).init(small())
    refuses("contractive", replace(ALGORITHM, uplink=fl.RandK(0.1)).init, small())
