"""The speed: runs side by side, the loop, checkpoints, capture and compilation."""
