"""Tests; what several files need is in `tests.helpers`."""
