"""Plain-loop twins of the algorithms, written from the papers without the library's machinery."""

import torch


def losses(w, X, y, shares):
    z = X @ w
    phi = torch.log1p(torch.exp(z)) - y * z
    return (phi[:, None] * shares).mean(0)


def gradient(w, X, y, shares, which):
    p = torch.sigmoid(X @ w)
    return ((p - y) * shares[:, which]) @ X / len(y)


def top_k(x, k):
    result = torch.zeros_like(x)
    falling = sorted(range(len(x)), key=lambda i: -abs(float(x[i])))
    for i in falling[:k]:
        result[i] = x[i]
    return result


def fedsgm(clients, participants, *, lr, steps, tolerance, level, switch, k_up, k_down, w):
    """The paper's Algorithm 1 on lists; `participants` gives the clients of every round."""
    x = w.clone()
    e = [torch.zeros_like(w) for _ in clients]
    path = []
    sigmas = []
    weighted = torch.zeros_like(w)
    weight = 0.0
    for chosen in participants:
        g_hat = sum(losses(w, *clients[j])[1] for j in chosen) / len(chosen)
        z = float(g_hat) - level - tolerance
        sigma = float(z > 0) if switch is None else min(1.0, max(0.0, 1 + switch * z))
        sent = []
        for j in chosen:
            u = w.clone()
            for _ in range(steps):
                direction = (1 - sigma) * gradient(u, *clients[j], 0)
                direction = direction + sigma * gradient(u, *clients[j], 1)
                u = u - lr * direction
            delta = (w - u) / lr
            v = top_k(e[j] + delta, k_up)
            e[j] = e[j] + delta - v
            sent.append(v)
        weighted = weighted + (1 - sigma) * w
        weight = weight + 1 - sigma
        x = x - lr * sum(sent) / len(sent)
        w = w + top_k(x - w, k_down)
        path.append(w)
        sigmas.append(sigma)
    return path, sigmas, e, weighted / weight if weight else None
