"""Every primary part of every claim on FedSGM can fail: planted numbers turn it."""

import pytest

from papers import STUDIES, all_claims
from papers.fedsgm.cartpole.claims import HALF, NONE, QUARTER
from papers.fedsgm.np_unified.rules import FRACTIONS, MEMBERS, SETTINGS, STEPS
from papers.kit import store
from papers.kit.numbers import Number

CLAIMS = {c.id.partition("/")[2]: (s, c) for s, c in all_claims() if c.id.startswith("fedsgm/")}


def number(x, half=1e-6):
    """A value that three seeds agree on, or do not; zero is a count."""
    half = half if x else 0.0
    return Number(x, x - half, x + half, (x - half, x, x + half))


def sweep(runs, ends, measure, values):
    return {f"{r}{e}.{measure}": v for r in runs for e, v in zip(ends, values, strict=True)}


MODES, GROUPS = ("hard", "soft"), ("", "_all")
FORMATS = ("float16", "float8", "float4")
CENTRAL = [f"central_{x}" for x in ("hard", "soft", "penalty")]
FORMAT_KEYS = [f"soft_{x}" for x in FORMATS]
C12 = sweep(SETTINGS, FRACTIONS, "oscillation", (0.2, 0.3, 0.4, 0.5, 0.6)) | {
    f"soft{g}{k}.oscillation": v
    for g in GROUPS
    for k, v in zip(FRACTIONS, (0.1, 0.2, 0.3, 0.4, 0.5), strict=True)
}
CENTRAL_MET = {f"{m}_{x}.{k}": 0.05 for m in MODES for x in ("all", "central") for k in "fg"}
FAIR = {
    **{f"{x}.f": 0.36 for x in ("hard", "soft", "penalty", *CENTRAL)},
    **{f"{x}.g": 0.04 for x in ("hard", "penalty")},
    "soft.g": 0.03,
}

#: claim -> numbers with which it is reproduced.
GOOD = {
    "C1": {f"{m}.{k}": v for m in MODES for k, v in (("f", 0.05), ("g", 0.1))},
    "C2": {"hard.after": 20, "soft.after": 0},
    "C3": {f"ratio.{x}": 4 for x in ("lr0.1", "lr0.2", "main", "lr0.5", "lr1")},
    "C4": {"hard.f": 0.035, "soft_beta200.f": 0.036},
    "C25": {f"{m}.band_{k}": v for m, v in (("hard", 2), ("soft", 1)) for k in "fg"},
    "C5": {f"{m}.{k}": v for m in MODES for k, v in (("f", 0.05), ("of_three", 0.99))},
    "C6": sweep(SETTINGS, STEPS, "f", (0.10, 0.08, 0.06, 0.05, 0.045)),
    "C7": sweep(SETTINGS, STEPS, "oscillation", (0.1, 0.2, 0.4, 0.8, 1.6)),
    "C8": sweep(MODES, MEMBERS, "target", (300, 250, 200, 150, 100))
    | sweep(MODES, MEMBERS, "oscillation", (4, 2, 1, 0.5, 0.2)),
    "C9": {
        **{f"penalty_rho{r}.g": 0.1 for r in ("0.001", "0.5")},
        **{"penalty_rho100.f": 0.1, "hard_tuned.f": 0.05},
    },
    "C10": {"penalty.right": 0.2},
    "C11": {
        **{f"{m}.{k}": v for m in MODES for k, v in (("f", 0.05), ("target", 200))},
        **{f"{m}_nofeedback.f": 0.1 for m in MODES},
        **{f"{m}_K1.target": 150 for m in MODES},
    },
    "C12": C12,
    "C13": {
        f"soft{g}_beta20.{k}_more": v for g in GROUPS for k, v in (("f", 0.01), ("g", -0.01))
    },
    "C14": {f"soft_beta20.{k}_more": 0.1 for k in ("oscillation_f", "band_f")},
    "C15": {f"{m}{g}{e}.{k}": 0.05 for m, e in (("hard", ""), ("soft", "_beta4000"))
            for g in GROUPS for k in "fg"},
    "C23": {f"limit{g}.gap": 1e-5 for g in GROUPS},
    "C24": {"skewness.local_to_global": 4, "skewness.bound_to_difference": 5},
    "C26": CENTRAL_MET,
    "C27": {f"spread.{x}_{k}": v for x, v in (("beta", 0.01), ("rho", 0.1)) for k in "fg"},
    "C16": {
        f"{x}.{k}": v
        for x in ("soft_top0.5", "central_fine_soft")
        for k, v in (("area", 120), ("violating", 0.1))
    }
    | {
        f"{x}.{k}": v
        for x in ("hard_top0.5", "central_fine_hard")
        for k, v in (("area", 80), ("violating", 0.5))
    },
    "C17": {
        f"{x}.reward{at}": v
        for x, v in (("hard_top0.5", 100), ("central_fine_hard", 80))
        for at in (100, 250, 500)
    },
    "C18": {"half_n3.area": 80, "half_n10.area": 100,
            "half_n3.cost_scatter": 4, "half_n10.cost_scatter": 2},
    "C19": {f"{x}.{k}500": v for x in FORMAT_KEYS for k, v in (("reward", 199), ("cost", 27))},
    "C20": {f"{HALF}.area": 80, f"{NONE}.area": 110, f"{QUARTER}.reward500": 25},
    "C21": {"central_fine_soft.cost500": 33, "soft_none.cost500": 27},
    "C28": {f"{x}.reward500": 190 for x in (*FORMAT_KEYS, "soft_none")},
    "C22": FAIR,
    "C29": {f"{x}.mean_f": 0.40 for x in ("hard", "soft", "penalty")}
    | {f"{x}.mean_f": 0.39 for x in CENTRAL},
    "C30": FAIR,
    "C31": FAIR | {f"{x}.g": 0.02 for x in CENTRAL},
    "C32": FAIR | {f"{x}.g": 0.02 for x in CENTRAL} | {f"conex_dual{d}.g": 0.01 for d in (1, 10)},
    "C33": {"soft.oscillation": 10, "hard.oscillation": 20, "penalty.oscillation": 20},
    "P1": {"share.gap": 0.05},
    "P2": {"level.gap": 0.005, "settled.after": 0},
    "P3": {"penalty.predicted_clear": 0.95},
}  # fmt: skip

#: claim -> for every primary part the numbers that make it, and nothing else, fail.
WRONG = {
    "C1": {"driven down": {"hard.f": 0.2}, "brought to its level": {"soft.g": 0.106}},
    "C2": {"violates again": {"hard.after": -0.1}, "never": {"soft.after": 1}},
    "C3": {"lr0.1": {"ratio.lr0.1": 1.8}, "lr1": {"ratio.lr1": 14}},
    "C4": {"5 % above": {"soft_beta200.f": 0.037}},
    "C25": {"bands, f": {"soft.band_f": 3}, "bands, g": {"soft.band_g": 3}},
    "C5": {"converge, soft": {"soft.f": 0.2}, "met, hard": {"hard.of_three": 0.4}},
    "C6": {
        "lower f, soft, all": {"soft_all.f": 0.085},
        "diminishes, hard, 10": {"hard_E20.f": 0.02},
    },
    "C7": {"rises with E, hard, all": {"hard_all_E20.oscillation": 0.7}},
    "C8": {"faster, soft": {"soft_all.target": 160}, "steadier, hard": {"hard.oscillation": 2.1}},
    "C9": {
        "infeasible, rho = 0.5": {"penalty_rho0.5.g": 0.04},
        "slow or poor": {"penalty_rho100.f": 0.04},
    },
    "C10": {"wrong": {"penalty.right": 0.6}},
    "C11": {
        "lets it converge, soft": {"soft_nofeedback.f": 0.04},
        "slower than without compression, hard": {"hard_K1.target": 210},
    },
    "C12": {
        "more than without compression, hard, all": {"hard_all_K1.oscillation": 0.6},
        "soft less than hard, 10": {"hard.oscillation": 0.39},
    },
    "C13": {
        "g lower, all": {"soft_all_beta20.g_more": 0.001},
        "f higher, 10": {"soft_beta20.f_more": -0.001},
    },
    "C14": {
        "f oscillates more": {"soft_beta20.oscillation_f_more": -0.1},
        "wider bands": {"soft_beta20.band_f_more": -0.1},
    },
    "C15": {"all clients: g": {"soft_all_beta4000.g": 0.053}, "10 of 20 clients: f":
            {"soft_beta4000.f": 0.047}},
    "C23": {"all clients": {"limit_all.gap": 0.01}},
    "C24": {
        "above that of the means": {"skewness.local_to_global": 0.9},
        "bound holds": {"skewness.bound_to_difference": 0.99},
    },
    "C26": {
        "late f within 10 %, hard": {"hard_all.f": 0.056},
        "late g within 5 %, soft": {"soft_all.g": 0.047},
    },
    "C27": {"late f": {"spread.beta_f": 0.2}, "late g": {"spread.beta_g": 0.2}},
    "C16": {
        "faster, centralized": {"central_fine_soft.area": 79},
        "steadily, federated": {"soft_top0.5.violating": 0.6},
    },
    "C17": {"round 250": {"hard_top0.5.reward250": 70}},
    "C18": {"slower": {"half_n3.area": 101}, "less stable": {"half_n3.cost_scatter": 1}},
    "C19": {
        "197 or more, float4": {"soft_float4.reward500": 190},
        "at most 30, float16": {"soft_float16.cost500": 31},
    },
    "C20": {"slower": {f"{HALF}.area": 120}, "not learn": {f"{QUARTER}.reward500": 187}},
    "C21": {
        "centralized": {"central_fine_soft.cost500": 28},
        "federated": {"soft_none.cost500": 31},
    },
    "C28": {"float8": {"soft_float8.reward500": 160}},
    "C22": {"smaller gap, hard": {"hard.g": 0.02}, "loss, the tuned": {"penalty.f": 0.34}},
    "C29": {"soft": {"central_soft.mean_f": 0.41}},
    "C30": {"comparable losses": {"hard.f": 0.38}, "keep the gap, tuned": {"penalty.g": 0.053}},
    "C31": {"hard": {"central_hard.g": 0.05}},
    "C32": {"conex_dual10": {"conex_dual10.g": 0.025}},
    "C33": {"the tuned penalty": {"penalty.oscillation": 9}},
    "P1": {"0.1": {"share.gap": 0.2}},
    "P2": {"0.01": {"level.gap": 0.02}, "after": {"settled.after": 1}},
    "P3": {"90 %": {"penalty.predicted_clear": 0.8}},
}  # fmt: skip


def judged(claim, numbers):
    study, found = CLAIMS[claim]
    stored = store.read_numbers(study.name)
    planted = {k: x if isinstance(x, Number) else number(x) for k, x in numbers.items()}
    assert planted.keys() <= stored.keys()
    return found.judge({**stored, **planted})


def states(outcome):
    return {part.name: part.state for part in outcome.parts if part.primary}


def test_every_claim_has_planted_numbers():
    assert CLAIMS.keys() == GOOD.keys() == WRONG.keys()


@pytest.mark.parametrize("claim", GOOD)
def test_a_claim_is_reproduced_where_all_that_it_says_is_seen(claim):
    assert set(states(judged(claim, GOOD[claim])).values()) == {"holds"}


@pytest.mark.parametrize(("claim", "words"), [(c, w) for c, parts in WRONG.items() for w in parts])
def test_each_part_fails_by_itself(claim, words):
    found = states(judged(claim, GOOD[claim] | WRONG[claim][words]))
    failing = [name for name, state in found.items() if state != "holds"]
    assert len(failing) == 1
    assert words in failing[0]
    assert found[failing[0]] == "fails"


@pytest.mark.parametrize("claim", WRONG)
def test_every_primary_part_is_turned(claim):
    parts = CLAIMS[claim][1].rule.primary
    turned = [
        next(name for name, state in found.items() if state == "fails")
        for found in (states(judged(claim, GOOD[claim] | w)) for w in WRONG[claim].values())
    ]
    assert all(any(name.startswith(part) for name in turned) for part in parts)


@pytest.mark.parametrize(
    ("claim", "wide"),
    [
        ("C3", {"ratio.lr0.2": number(3, 1)}),
        ("C4", {"soft_beta200.f": Number(0.036, 0.03, 0.042, (0.036, 0.03, 0.042))}),
        ("C8", {"soft_all.target": Number(100, 0, 200, (100, 0, 200))}),
        ("C19", {"soft_float4.reward500": number(180, 30)}),
        ("C31", {"central_hard.g": Number(0.02, 0, 0.08, (0.02, 0.08, -0.04))}),
    ],
)
def test_seeds_that_disagree_leave_a_claim_undecided(claim, wide):
    assert judged(claim, GOOD[claim] | wide).verdict == "undecided"


def test_the_compressors_are_judged_where_the_uncompressed_row_is_met():
    claim = CLAIMS["C20"][1]
    assert judged("C20", {}).verdict != "not judged"
    for at, printed in ((100, 67.2), (500, 199.4)):
        off = {
            f"{NONE}.reward{at}": Number(printed - 20, printed - 30, printed - 10, (1.0, 2.0, 3.0))
        }
        outcome = judged("C20", GOOD["C20"] | off)
        assert outcome.verdict == "not judged"
        assert "without compression is not met" in outcome.reason
    assert claim.runs == (HALF, QUARTER, NONE)


def test_figure_7_is_never_judged_on_the_stand_in():
    study = STUDIES["fairness"]
    numbers = store.read_numbers(study.name)
    for claim in study.claims:
        paper = {name: study.payload(name)["config"] for name in claim.runs}
        other = {k: {**v, "problem": {**v["problem"], "data": "x"}} for k, v in paper.items()}
        assert "problem.data 'x'" in claim.verdict(numbers, other, paper).reason
