"""gyre for PyTorch users: optimizers that bear stale gradients."""
