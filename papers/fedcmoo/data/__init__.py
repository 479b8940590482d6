"""Pictures in pairs, attributes and molecules: the data of FedCMOO alone."""
