"""What FedSGM's claims need beside their rules: a row that is met, and the paper's own data."""

from papers import STUDIES, all_claims
from papers.fedsgm.cartpole.claims import AS_CALIBRATED
from papers.kit import store
from papers.kit.health import Evidence
from papers.kit.quantities import Query


def test_the_compressors_are_judged_where_the_uncompressed_row_is_met():
    (claim,) = (claim for _, claim in all_claims() if claim.id == "fedsgm/C20")
    assert all(run.endswith("damping0.01") for run in claim.runs)
    numbers = store.read_numbers("cartpole")
    for at, printed in ((100, 67.2), (500, 199.4)):
        reward = numbers[Query.of(f"reward{at}", **AS_CALIBRATED)]
        assert reward.low <= printed <= reward.high


def test_figure_7_is_never_judged_on_the_stand_in():
    study = STUDIES["fairness"]
    numbers = store.read_numbers(study.name)
    for claim in study.claims:
        paper = {name: study.payload(name)["config"] for name in claim.runs}
        stand_in = {}
        for name, config in paper.items():
            stand_in[name] = {**config, "problem": {**config["problem"], "data": "x"}}
        outcome = claim.verdicts(Evidence(numbers, stand_in, paper))[claim.reading]
        assert "problem.data 'x'" in outcome.reason
