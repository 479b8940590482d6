"""What the notes on FedCMOO compute: bounds, independent implementations, small experiments."""
