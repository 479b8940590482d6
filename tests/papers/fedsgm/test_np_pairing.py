"""Exchanged constraints change the clients alone; the reported angle is the one by hand."""

import numpy as np
import torch
from torch.testing import assert_close

import fedlib as fl
from papers.fedsgm.np_pairing.runs import CLIENTS, TurningFedSGM, paired
from papers.fedsgm.skewness import client_gradients, skewness
from tests.helpers.expect import near
from tests.helpers.rounds import final_model


def test_a_pairing_changes_the_skewness_and_no_mean():
    usual = paired(3, shift=0)
    w = torch.linspace(-0.2, 0.3, usual.dim, dtype=torch.float64)
    f_slopes, g_slopes = client_gradients(usual, w)
    f_shifted, g_shifted = client_gradients(paired(3, shift=7), w)
    assert_close(f_slopes, f_shifted)
    assert_close(g_slopes.roll(7, 0), g_shifted)
    ratio = skewness(f_slopes, g_slopes).local / skewness(f_shifted, g_shifted).local
    assert max(ratio, 1 / ratio) > 1.01


def test_the_reported_angle_is_that_between_two_changes():
    method = TurningFedSGM(lr=0.3, local_steps=2, participants=CLIENTS, tolerance=0.05)
    task = paired(3, shift=0)
    ends = [final_model(method, task, t) for t in (1, 2, 3)]
    changes = np.diff(torch.stack([task.w0, *ends]).numpy(), axis=0)
    turns = fl.run(method, task, rounds=3, progress=False).info["turn"][0]
    for t in (1, 2):
        u = changes[t - 1]
        v = changes[t]
        cosine = u @ v / np.linalg.norm(u) / np.linalg.norm(v)
        expected = np.degrees(np.arccos(cosine))
        near(turns[t], expected, abs=1e-3)
    near(turns[0], 90)
