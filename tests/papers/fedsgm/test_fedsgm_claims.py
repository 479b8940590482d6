"""What FedSGM's claims need beside their rules: a row that is met, and the paper's own data."""

from papers import STUDIES, all_claims
from papers.fedsgm.cartpole.claims import HALF, NONE, QUARTER
from papers.kit import store
from papers.kit.numbers import Number

(C20,) = (claim for _, claim in all_claims() if claim.id == "fedsgm/C20")


def judged(numbers):
    return C20.rule({**store.read_numbers("cartpole"), **numbers})


def test_the_compressors_are_judged_where_the_uncompressed_row_is_met():
    assert judged({}).verdict != "not judged"
    for at, printed in ((100, 67.2), (500, 199.4)):
        off = {
            f"{NONE}.reward{at}": Number(printed - 20, printed - 30, printed - 10, (1.0, 2.0, 3.0))
        }
        outcome = judged(off)
        assert outcome.verdict == "not judged"
        assert "run without compression misses" in outcome.reason
    assert C20.runs == (HALF, QUARTER, NONE)


def test_figure_7_is_never_judged_on_the_stand_in():
    study = STUDIES["fairness"]
    numbers = store.read_numbers(study.name)
    for claim in study.claims:
        paper = {name: study.payload(name)["config"] for name in claim.runs}
        other = {k: {**v, "problem": {**v["problem"], "data": "x"}} for k, v in paper.items()}
        assert "problem.data 'x'" in claim.verdicts(numbers, other, paper)[claim.reading].reason
