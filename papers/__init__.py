"""The studies: each reproduces a figure, a table or a group of them."""

from papers.arena import STUDY as ARENA
from papers.fedcmoo.many import STUDY as CMOO_MANY
from papers.fedcmoo.pairs import STUDY as CMOO_PAIRS
from papers.fedcmoo.probe import STUDY as CMOO_PROBE
from papers.fedcmoo.qm9 import STUDY as CMOO_QM9
from papers.fedcmoo.sweeps import STUDY as CMOO_SWEEPS
from papers.fedcmoo.toy import STUDY as CMOO_TOY
from papers.fedfw.leakage import STUDY as FW_LEAKAGE
from papers.fedfw.lowrank import STUDY as FW_LOWRANK
from papers.fedfw.rates import STUDY as FW_RATES
from papers.fedfw.stochastic import STUDY as FW_STOCHASTIC
from papers.fedfw.tables import STUDY as FW_TABLES
from papers.fedsgm.bounds import STUDY as BOUNDS
from papers.fedsgm.cartpole import STUDY as CARTPOLE
from papers.fedsgm.fairness import STUDY as FAIRNESS
from papers.fedsgm.np_unified import STUDY as NP_UNIFIED
from papers.fedsgm.np_workshop import STUDY as NP_WORKSHOP
from papers.kit.claims import Claim
from papers.kit.study import Evaluated, Study
from papers.ssca.convergence import STUDY as SSCA_CONVERGENCE
from papers.ssca.long import STUDY as SSCA_LONG
from papers.ssca.tradeoff import STUDY as SSCA_TRADEOFF

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
