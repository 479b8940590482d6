"""FedCMOO: several objectives for one upload a round."""
