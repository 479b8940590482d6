"""FedFW: Frank-Wolfe in place of projections."""
