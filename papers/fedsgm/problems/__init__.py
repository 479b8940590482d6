"""Problems of the theory of FedSGM alone."""
