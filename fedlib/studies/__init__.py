"""The studies: each reproduces a figure, a table or a group of them."""

from fedlib.claims import Claim
from fedlib.studies.arena import STUDY as ARENA
from fedlib.studies.base import Evaluated, Study
from fedlib.studies.bounds import STUDY as BOUNDS
from fedlib.studies.cartpole import STUDY as CARTPOLE
from fedlib.studies.cmoo_many import STUDY as CMOO_MANY
from fedlib.studies.cmoo_pairs import STUDY as CMOO_PAIRS
from fedlib.studies.cmoo_probe import STUDY as CMOO_PROBE
from fedlib.studies.cmoo_qm9 import STUDY as CMOO_QM9
from fedlib.studies.cmoo_sweeps import STUDY as CMOO_SWEEPS
from fedlib.studies.cmoo_toy import STUDY as CMOO_TOY
from fedlib.studies.fairness import STUDY as FAIRNESS
from fedlib.studies.fw_leakage import STUDY as FW_LEAKAGE
from fedlib.studies.fw_lowrank import STUDY as FW_LOWRANK
from fedlib.studies.fw_rates import STUDY as FW_RATES
from fedlib.studies.fw_stochastic import STUDY as FW_STOCHASTIC
from fedlib.studies.fw_tables import STUDY as FW_TABLES
from fedlib.studies.np_unified import STUDY as NP_UNIFIED
from fedlib.studies.np_workshop import STUDY as NP_WORKSHOP
from fedlib.studies.ssca_convergence import STUDY as SSCA_CONVERGENCE
from fedlib.studies.ssca_long import STUDY as SSCA_LONG
from fedlib.studies.ssca_tradeoff import STUDY as SSCA_TRADEOFF

__all__ = ["STUDIES", "Evaluated", "Study", "all_claims"]

#: All studies by name.
STUDIES = {
    study.name: study
    for study in (
        *(NP_WORKSHOP, NP_UNIFIED, CARTPOLE, FAIRNESS, BOUNDS),
        *(CMOO_PAIRS, CMOO_SWEEPS, CMOO_PROBE, CMOO_MANY, CMOO_QM9, CMOO_TOY),
        *(SSCA_CONVERGENCE, SSCA_TRADEOFF, SSCA_LONG),
        *(FW_RATES, FW_TABLES, FW_STOCHASTIC, FW_LOWRANK, FW_LEAKAGE),
        ARENA,
    )
}


def all_claims() -> list[tuple[Study, Claim]]:
    """Every claim with the study that measures it, in the order of the papers."""
    return [(study, claim) for study in STUDIES.values() for claim in study.claims]
