"""FedSGM with policy steps: one round by hand, both engines, the trust region, and learning."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.core.sampling import seeded
from papers.fedsgm.cartpole.method import SCALE, PolicyFedSGM
from papers.fedsgm.cartpole.simulator import cartpole
from papers.fedsgm.cartpole.trpo import conjugate_gradient, cosine_features, normalized, ridge
from tests.helpers.expect import refuses
from tests.helpers.problems import np_problem

ALGORITHM = PolicyFedSGM(
    participants=2,
    tolerance=0.0,
    switch=fl.Soft(0.2),
    cg_steps=4,
)


def small(seed=0, clients=3, **changes):
    return cartpole(seed, clients=clients, environments=2, evaluation=4, **changes)


def after(algorithm, problem, rounds, engine=fl.Vectorized, seed=0):
    state = algorithm.init(problem)
    rng = seeded(seed, "rounds")
    for _ in range(rounds):
        draw = algorithm.draw(problem, rng)
        state, info = algorithm.round(engine(problem), state, draw)
    return state, info


def client_of(problem, state, draw, j):
    """Participant j, alone."""
    federation = fl.Vectorized(problem)
    clients = federation.clients(draw, model=state.w, memory=state.residual)
    client = torch.utils._pytree.tree_map(lambda x: x[j], clients._replace(model=()))
    return federation.client(client._replace(model=state.w))


def gains_by_hand(amount, ended, V):
    """Advantages and returns with discount 1 and lambda 0.97, backwards in a plain loop."""
    advantages = torch.zeros_like(amount)
    returns = torch.zeros_like(amount)
    advantage = torch.zeros(2)
    tail = V[-1]
    for t in reversed(range(len(amount))):
        going = 1 - ended[t]
        advantage = amount[t] + going * V[t + 1] - V[t] + 0.97 * going * advantage
        tail = amount[t] + going * tail
        advantages[t] = advantage
        returns[t] = tail
    return advantages, returns


def step_by_hand(sim, w, run, A, algorithm):
    """Natural gradient with the explicit Jacobian, and the line search as a loop."""
    states = run.states[:-1]
    flat = states.transpose(0, 1).flatten(0, 1)
    stride = len(flat) // algorithm.curvature_states
    sampled = flat[::stride][: algorithm.curvature_states]

    def surrogate(u):
        return (sim.head.log_prob(sim.policy(u, states), run.action) * A).mean()

    ascent = algorithm.on_gradient(torch.autograd.functional.vjp(surrogate, w)[1])
    outputs = sim.policy(w, sampled)
    J = torch.func.jacrev(lambda u: sim.policy(u, sampled))(w)  # [100, 2, d]

    def fisher(v):
        curved = sim.head.fisher(outputs, J @ v)
        return torch.einsum("bid,bi->d", J, curved) / len(sampled) + 0.1 * v

    s, remaining = conjugate_gradient(fisher, ascent, algorithm.cg_steps)
    curvature = s @ (ascent - remaining - 0.1 * s)
    scale = (2 * algorithm.kl_limit / curvature).sqrt()
    for i in range(6):
        move = 0.7**i * scale * s
        divergence = sim.head.kl(outputs, sim.policy(w + move, sampled)).mean()
        if divergence <= algorithm.kl_limit:
            return move
    return torch.zeros_like(w)


@pytest.mark.parametrize("on_gradient", [fl.Identity(), fl.TopK(0.25)])
def test_a_round_equals_its_lines_done_one_by_one_for_every_client(on_gradient):
    problem = small()
    topk = fl.TopK(0.5)
    algorithm = replace(ALGORITHM, uplink=topk, downlink=topk, on_gradient=on_gradient)
    state, _ = after(algorithm, problem, 1)
    draw = algorithm.draw(problem, seeded(9, "rounds"))
    reached, info = algorithm.round(fl.Vectorized(problem), state, draw)
    sim = problem.simulator
    w = state.w
    participants = draw.participants.tolist()
    runs = [sim.episodes(w, draw.chance[j]) for j in range(2)]
    budgets = problem.data[0][participants]
    g = torch.stack([run.per_episode(run.cost) for run in runs]) - budgets
    torch.testing.assert_close(info["g_hat"], g.mean())
    sigma = (1 + 0.2 * g.mean()).clamp(0, 1)
    residual = state.residual.clone()
    messages = []
    critics = []
    for run, i in zip(runs, participants, strict=True):
        features = cosine_features(sim.inputs(run.states), state.basis)
        V = SCALE * features @ state.critics
        rewards, returns = gains_by_hand(run.reward, run.ended, V[..., 0])
        costs, cost_returns = gains_by_hand(run.cost, run.ended, V[..., 1])
        A = (1 - sigma) * normalized(rewards) - sigma * normalized(costs)
        change = residual[i] - step_by_hand(sim, w, run, A, algorithm)
        message = topk(change)
        residual[i] = change - message
        messages.append(message)
        targets = torch.stack([returns.flatten(), cost_returns.flatten()], -1) / SCALE
        critics.append(ridge(features[:-1].flatten(0, 1), targets, 1e-3))
    x = state.x - torch.stack(messages).mean(0)
    close = {"atol": 2e-3 * float((x - state.x).abs().max()), "rtol": 0}
    torch.testing.assert_close(reached.x, x, **close)
    expected = w + topk(x - w)
    torch.testing.assert_close(reached.w, expected, **close)
    torch.testing.assert_close(reached.residual, residual, **close)
    critic = torch.stack(critics).mean(0)
    torch.testing.assert_close(reached.critics, critic, atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize("uplink", [fl.TopK(0.25), fl.Rounding(1)], ids=str)
def test_both_engines_agree(uplink):
    algorithm = replace(ALGORITHM, uplink=uplink, downlink=uplink)
    fast, info = after(algorithm, small(), 2)
    slow, plain = after(algorithm, small(), 2, engine=fl.Loop)
    torch.testing.assert_close(fast.w, slow.w, atol=2e-4, rtol=0)
    assert (fast.w - small().w0).abs().max() > 5e-3
    assert all(info[k] == plain[k] for k in ("bits_up", "bits_down"))


@pytest.mark.parametrize("damping", [0.01, 1.0])
def test_the_step_stays_within_its_divergence(damping):
    problem = small()
    algorithm = replace(ALGORITHM, damping=damping)
    state, _ = after(algorithm, problem, 1)
    draw = algorithm.draw(problem, seeded(5, "rounds"))
    sim = problem.simulator
    half = torch.tensor(0.5)
    tables = {"critics": state.critics, "basis": state.basis}
    for j in range(2):
        client = client_of(problem, state, draw, j)
        delta = algorithm.local_update(client, half, **tables)
        states = sim.episodes(state.w, draw.chance[j]).states[:-1]
        flat = states.transpose(0, 1).flatten(0, 1)
        sampled = flat[:: len(flat) // 100][:100]
        outputs = sim.policy(state.w, sampled)
        moved = sim.policy(state.w - delta, sampled)
        divergence = float(sim.head.kl(outputs, moved).mean())
        assert 0.002 < divergence <= 0.01 * (1 + 1e-4)  # and the trust region is used


def test_bits_are_counted_for_the_value_the_step_the_critics_and_the_policy():
    problem = small()
    algorithm = replace(ALGORITHM, uplink=fl.TopK(0.25))
    state, info = after(algorithm, problem, 1)
    critics = 32 * state.critics.numel()
    d = problem.dim
    assert info["bits_up"] == 2 * (32 + fl.TopK(0.25).bits(d) + critics)
    assert info["bits_down"] == 2 * 32 + 3 * (critics + 32 * d)


def test_clients_out_of_the_round_keep_their_memory():
    problem = small()
    algorithm = replace(ALGORITHM, participants=1, uplink=fl.TopK(0.25))
    state = algorithm.init(problem)
    draw = algorithm.draw(problem, seeded(2, "rounds"))
    reached, _ = algorithm.round(fl.Vectorized(problem), state, draw)
    moved = (reached.residual != 0).any(1)
    assert moved.tolist() == [j == int(draw.participants[0]) for j in range(3)]


def test_what_does_not_fit_the_problem_is_named():
    refuses("simulated", ALGORITHM.init, np_problem())
    beyond = replace(ALGORITHM, curvature_states=401)
    refuses("curvature_states must be at most the 400", beyond.init, small())
    replace(ALGORITHM, curvature_states=400).init(small())
    refuses("contractive", replace(ALGORITHM, uplink=fl.RandK(0.1)).init, small())
