"""FedSGM, the workshop paper and its successor: one constraint, kept by switching."""
