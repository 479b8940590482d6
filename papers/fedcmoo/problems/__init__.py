"""The problems of FedCMOO's tables."""
