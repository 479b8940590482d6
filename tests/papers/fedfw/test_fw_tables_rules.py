"""The studies of FedFW's Tables 1, 2 and 3: rules both ways, and which runs they rest on."""

import pytest
from planted import about
from table_runs import STUDY, STUDY_3, fake

from papers.fedfw.cells import BEST_FEDDR, CELLS, NON_IID, SYNTHETIC, TABLES, as_coded
from papers.fedfw.stochastic.claims import JUDGED, STAND_IN, TABLE_3
from papers.fedfw.tables import claims
from papers.kit import store

#: What decides each reading of each claim: key -> a value with which it holds.
DECIDES = {
    "fedfw/C7": {
        kind: {f"{k}_l2_labels.ahead": 2, f"{k}_l2_synthetic.ahead": 2, f"{k}_l2_iid.best": 2}
        for kind, k in ((claims.TRACED, "code"), (claims.WRITTEN, "written"))
    },
    "fedfw/C8": {
        claims.TRACED: {f"{c}_l1_code_fedfw_vs_feddr.best": 2 for c in claims.COLUMNS_C8},
        claims.WRITTEN: {f"{c}_l1_fedfw_vs_feddr.accuracy": 2 for c in claims.COLUMNS_C8},
    },
    "fedfw/C9": {
        "as traced: best of the rounds": {
            f"{as_coded(c)}_code_sto_vs_feddr.best": 1 for c in JUDGED
        },
        "as written: after 300 rounds": {f"{c}_sto_vs_feddr.accuracy": 1 for c in JUDGED},
    },
    "fedfw/C10": {"": {"plus_vs_fedfw.rounds": -3, "plus_vs_fedfw.fewer": 90}},
    "fedfw/C14": {
        "": {f"{c}_{norm}_fedfw_vs_feddr.accuracy": 2 if first == "FedFW" else -2
             for (c, norm), first in claims.CNN.items()}
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    """The numbers of made-up runs, by study."""
    full = [(s, s.resolve("full")) for s in (STUDY, STUDY_3)]
    return {s.name: s.derive(fake(s, p), p) for s, p in full}


@pytest.mark.parametrize("claim", [*STUDY.claims, *STUDY_3.claims], ids=lambda c: c.id)
def test_a_rule_holds_fails_in_each_part_and_fails_in_all(claim, found):
    rules = {claim.reading: claim.rule} | {r.name: r.rule for r in claim.readings}
    assert [*rules] == [*DECIDES[claim.id]]
    for reading, deciding in DECIDES[claim.id].items():
        held = {
            **found[STUDY.name],
            **found[STUDY_3.name],
            **{k: about(v) for k, v in deciding.items()},
        }
        assert rules[reading](held).verdict == "reproduced"
        middle = {k: 50 if k.endswith("fewer") else 0 for k in deciding}
        for key, value in deciding.items():
            bad = about(2 * middle[key] - value)
            assert rules[reading]({**held, key: bad}).verdict == "partly", key
            assert rules[reading]({**held, key: about(middle[key])}).verdict == "undecided", key
        wrong = {k: about(2 * middle[k] - v) for k, v in deciding.items()}
        assert rules[reading]({**held, **wrong}).verdict == "not reproduced"


def test_the_columns_of_the_rules_are_those_of_the_tables():
    ahead = [(c, "l2") for c in NON_IID + SYNTHETIC] + [(c, "l1") for c in claims.COLUMNS_C8]
    assert all(TABLES[cell][1] > TABLES[cell][0] for cell in ahead)
    assert all(max(TABLES[c, "l2"]) == TABLES[c, "l2"][0] for c in BEST_FEDDR)
    for cell, first in claims.CNN.items():
        assert (TABLES[cell][1] > TABLES[cell][0]) == (first == "FedFW")
    assert all(TABLE_3[c][1] > TABLE_3[c][0] for c in JUDGED + STAND_IN)
    assert len(CELLS) == 14


def test_no_untrained_point_of_a_grid_is_chosen_and_every_one_is_meant():
    from fnmatch import fnmatch

    stored = store.read_numbers("fw_tables")
    wrong = {name for name, h in store.read_health("fw_tables").items() if h.wrong}
    runs = {run for claim in STUDY.claims if claim.id != "fedfw/C14" for run in claim.all_runs}
    assert {n for n in wrong & runs if not any(fnmatch(n, p) for p in claims.UNTRAINED)} == set()
    judged = [(c, norm) for c, norm in CELLS if norm == "l2" or c in claims.COLUMNS_C8]
    for column, norm in judged:
        cell = f"{column}_{norm}"
        best = [f"{cell}_{m}_{stored[f'{cell}_{m}.lam'].value:g}" for m in ("fedfw", "plus")]
        lr, eta = (stored[f"{cell}_feddr.{k}"].value for k in ("lr", "eta"))
        assert not wrong & {*best, f"{cell}_feddr_{lr:g}_{eta:g}"}


def test_the_cnn_is_not_judged_while_it_does_not_train():
    (cnn,) = (c for c in STUDY.claims if c.id == "fedfw/C14")
    assert STUDY.evaluate(cnn).outcome.verdict == "not judged"
    health = store.read_health("fw_tables")
    assert all("at chance" in health[n].wrong for n in cnn.runs if "_fedfw_" in n)


@pytest.mark.parametrize("study", [STUDY, STUDY_3], ids=lambda s: s.name)
def test_printed_values_name_numbers_that_exist(study, found):
    assert {value.key for value in study.paper_values} <= found[study.name].keys()
