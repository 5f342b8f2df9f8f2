"""(X, Y) -> one matrix: rho for MCODE, [X | Y] for the baselines."""
