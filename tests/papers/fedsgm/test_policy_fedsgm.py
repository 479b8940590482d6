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

ALGORITHM = PolicyFedSGM(participants=2, tolerance=0.0, switch=fl.Soft(0.2), cg_steps=4)


def small(seed=0, clients=3, **changes):
    return cartpole(seed, clients=clients, environments=2, evaluation=4, **changes)


def after(algorithm, problem, rounds, engine=fl.Vectorized, seed=0):
    state, rng = algorithm.init(problem), seeded(seed, "rounds")
    for _ in range(rounds):
        state, info = algorithm.round(engine(problem), state, algorithm.draw(problem, rng))
    return state, info


def client_of(problem, state, draw, j):
    """Participant j, alone."""
    fed = fl.Vectorized(problem)
    clients = fed.clients(draw, model=state.w, memory=state.residual)
    own = torch.utils._pytree.tree_map(lambda x: x[j], clients._replace(model=()))
    return fed.client(own._replace(model=state.w))


@pytest.mark.parametrize("on_gradient", [fl.Identity(), fl.TopK(0.25)])
def test_a_round_equals_its_lines_done_one_by_one_for_every_client(on_gradient):
    problem = small()
    topk = fl.TopK(0.5)
    algorithm = replace(ALGORITHM, uplink=topk, downlink=topk, on_gradient=on_gradient)
    state, _ = after(algorithm, problem, 1)
    draw = algorithm.draw(problem, seeded(9, "rounds"))
    new, info = algorithm.round(fl.Vectorized(problem), state, draw)
    sim, w, budgets = problem.simulator, state.w, problem.data[0]
    runs = [sim.episodes(w, draw.chance[j]) for j in range(2)]
    costs = [r.per_episode(r.cost) for r in runs]
    g = torch.stack(
        [c - budgets[i] for c, i in zip(costs, draw.participants.tolist(), strict=True)]
    )
    torch.testing.assert_close(info["g_hat"], g.mean())
    sigma = (1 + 0.2 * g.mean()).clamp(0, 1)
    residual, messages, critics = state.residual.clone(), [], []
    for run, i in zip(runs, draw.participants.tolist(), strict=True):
        features = cosine_features(sim.inputs(run.states), state.basis)
        V = SCALE * features @ state.critics
        gained = {}
        for k, amount in enumerate((run.reward, run.cost)):
            A, R = torch.zeros_like(amount), torch.zeros_like(amount)
            late, tail = torch.zeros(2), V[-1, :, k]
            for t in reversed(range(len(amount))):
                going = 1 - run.ended[t]
                late = amount[t] + going * V[t + 1, :, k] - V[t, :, k] + 0.97 * going * late
                tail = amount[t] + going * tail
                A[t], R[t] = late, tail
            gained[k] = A, R
        A = (1 - sigma) * normalized(gained[0][0]) - sigma * normalized(gained[1][0])
        move = step_by_hand(sim, w, run, A, algorithm)
        v = fl.TopK(0.5)(residual[i] - move)
        residual[i] = residual[i] - move - v
        messages.append(v)
        targets = torch.stack([gained[k][1].flatten() for k in (0, 1)], -1) / SCALE
        critics.append(ridge(features[:-1].flatten(0, 1), targets, 1e-3))
    x = state.x - torch.stack(messages).mean(0)
    close = {"atol": 2e-3 * float((x - state.x).abs().max()), "rtol": 0}
    torch.testing.assert_close(new.x, x, **close)
    torch.testing.assert_close(new.w, w + fl.TopK(0.5)(x - w), **close)
    torch.testing.assert_close(new.residual, residual, **close)
    torch.testing.assert_close(new.critics, torch.stack(critics).mean(0), atol=1e-3, rtol=1e-2)


def step_by_hand(sim, w, run, A, algorithm):
    """Natural gradient with the explicit Jacobian, and the line search as a loop."""
    states = run.states[:-1]
    flat = states.transpose(0, 1).flatten(0, 1)
    some = flat[:: len(flat) // algorithm.curvature_states][: algorithm.curvature_states]

    def surrogate(u):
        return (sim.head.log_prob(sim.policy(u, states), run.action) * A).mean()

    ascent = algorithm.on_gradient(torch.autograd.functional.vjp(surrogate, w)[1])
    before = sim.policy(w, some)
    J = torch.func.jacrev(lambda u: sim.policy(u, some))(w)  # [100, 2, d]

    def fisher(v):
        return torch.einsum("bid,bi->d", J, sim.head.fisher(before, J @ v)) / len(some) + 0.1 * v

    s, rest = conjugate_gradient(fisher, ascent, algorithm.cg_steps)
    scale = (2 * algorithm.kl_limit / (s @ (ascent - rest - 0.1 * s))).sqrt()
    for i in range(6):
        move = 0.7**i * scale * s
        if sim.head.kl(before, sim.policy(w + move, some)).mean() <= algorithm.kl_limit:
            return move
    return torch.zeros_like(w)


@pytest.mark.parametrize("uplink", [fl.Identity(), fl.TopK(0.25), fl.Rounding(1)], ids=str)
def test_both_engines_agree(uplink):
    algorithm = replace(ALGORITHM, uplink=uplink, downlink=uplink)
    fast, info = after(algorithm, small(), 2)
    slow, plain = after(algorithm, small(), 2, engine=fl.Loop)
    torch.testing.assert_close(fast.w, slow.w, atol=2e-4, rtol=0)
    assert (fast.w - small().w0).abs().max() > 5e-3
    assert all(info[k] == plain[k] for k in ("bits_up", "bits_down"))


@pytest.mark.parametrize("damping", [0.01, 0.1, 1.0])
def test_the_step_stays_within_its_divergence(damping):
    problem, algorithm = small(), replace(ALGORITHM, damping=damping)
    state, _ = after(algorithm, problem, 1)
    draw = algorithm.draw(problem, seeded(5, "rounds"))
    sim, reached = problem.simulator, []
    for j in range(2):
        delta = algorithm.local_update(
            client_of(problem, state, draw, j),
            torch.tensor(0.5),
            critics=state.critics,
            basis=state.basis,
        )
        states = sim.episodes(state.w, draw.chance[j]).states[:-1].transpose(0, 1).flatten(0, 1)
        some = states[:: len(states) // 100][:100]
        before, now = sim.policy(state.w, some), sim.policy(state.w - delta, some)
        reached.append(float(sim.head.kl(before, now).mean()))
    assert max(reached) <= 0.01 * (1 + 1e-4)
    assert min(reached) > 0.002  # and the trust region is used


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
    new, _ = algorithm.round(fl.Vectorized(problem), state, draw)
    moved = (new.residual != 0).any(1)
    assert moved.tolist() == [j == int(draw.participants[0]) for j in range(3)]


def test_what_does_not_fit_the_problem_is_named():
    refuses("simulated", ALGORITHM.init, np_problem())
    many = replace(ALGORITHM, curvature_states=401)
    refuses("curvature_states must be at most the 400", many.init, small())
    replace(ALGORITHM, curvature_states=400).init(small())
    refuses("contractive", replace(ALGORITHM, uplink=fl.RandK(0.1)).init, small())
