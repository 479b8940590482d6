"""Solvers of the small problems that a server solves in a round.

Solver | problem
-- | --
`simplex` | projection onto the simplex, and projected gradient steps on it
`min_norm` | the shortest convex combination of gradients
`linear_program` | the linear program of a preference among objectives
`leading_pair` | the largest singular value of a matrix and its vectors
`interior_point` | the penalized quadratic problem of SSCA's server

None of them knows clients, messages or algorithms.
"""
