"""Work: what several methods share of a round, as bases to derive a method from.

Base | work
-- | --
`local.LocalWork` | a sample of clients makes local steps
`switching.SwitchingWork` | the same on the objectives or on the constraints, compressed both ways
`objectives.ObjectivesWork` | local steps on several weighted objectives
`centralized.Centralized` | one client holds all data, and a round makes several steps
`oracles.OracleWork` | each client calls a linear minimization oracle
`samples.OverSamples` | all clients take a batch of distinct rows
`features.OverFeatures` | clients hold features of pooled samples

What a method receives as a field (a switch, a compressor, a schedule) is in the rooms below.
"""
