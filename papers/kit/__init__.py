"""What all studies share: stored runs, numbers, claims, figures, tables."""
