"""Many objectives: the problems and methods of the study, its numbers, and the rule of C2."""

import torch

from papers.fedcmoo.many.runs import SETS, many_problem, own_pictures
from papers.fedcmoo.problems.attributes import GROUPS
from tests.helpers.expect import near

SMALL = {"clients": 3, "alpha": 0.3, "pictures": 90, "test_pictures": 40}


def test_the_three_problems_ask_the_same_of_the_same_pictures():
    problems = {t: many_problem(0, source="stand-in", tasks=t, **SMALL) for t in SETS}
    assert {t: p.num_objectives for t, p in problems.items()} == SETS
    halved, *further = problems.values()
    for problem in further:
        assert torch.equal(halved.data[0], problem.data[0])
        assert halved.sizes == problem.sizes
    a = problems["attributes"].data[1]
    halves = problems["halves"].data[1]
    groups = problems["groups"].data[1]
    assert torch.equal(halves, torch.stack([a[:, :20], a[:, 20:]], 1))
    assert torch.equal(groups[:, 3], a[:, list(GROUPS[3])])
    share = own_pictures("stand-in", "test", 40).a.double().mean(0)
    expected = torch.maximum(share, 1 - share).mean().item()
    near(halved.config["majority"], expected, abs=1e-6)
