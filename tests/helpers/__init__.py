"""What several test files need; imported by full name."""
