"""Arrays in, arrays out: L2-penalised logistic regression for many columns at once."""
