"""Flower between the two ends of a federation."""
