"""SSCA: stochastic successive convex approximation, for split samples and split features."""
