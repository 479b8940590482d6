"""Fast execution: batched runs, the loop, checkpoints, capture and compilation."""
