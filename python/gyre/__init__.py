"""gyre for PyTorch users: optimizers that tolerate stale gradients."""
