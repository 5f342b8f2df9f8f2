"""Slow, obvious versions of what the scores compute."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def lof_by_definition(M: Floats, k: int, queries: Floats | None = None) -> Floats:
    """Breunig's local outlier factor with every copy a row of its own: infinity over infinity is 1."""
    n = M.shape[0]
    apart = np.sqrt(((M[:, None, :] - M[None, :, :]) ** 2).sum(axis=2))

    def neighbourhood(distances: Floats, own: int | None) -> tuple[float, list[int]]:
        others = [j for j in range(n) if j != own]
        k_distance = sorted(distances[j] for j in others)[k - 1]
        return k_distance, [j for j in others if distances[j] <= k_distance * (1 + 1e-9)]

    def density(distances: Floats, members: list[int]) -> float:
        reach = [max(k_distances[j], distances[j]) for j in members]
        return np.inf if sum(reach) == 0 else len(reach) / sum(reach)

    def ratio(a: float, b: float) -> float:
        return 1.0 if np.isinf(a) and np.isinf(b) else a / b

    found = [neighbourhood(apart[i], i) for i in range(n)]
    k_distances = [k_distance for k_distance, _ in found]
    densities = [density(apart[i], found[i][1]) for i in range(n)]
    if queries is None:
        return np.array([np.mean([ratio(densities[j], densities[i]) for j in found[i][1]]) for i in range(n)])
    scores = []
    for query in queries:
        distances = np.sqrt(((M - query) ** 2).sum(axis=1))
        members = neighbourhood(distances, None)[1]
        own = density(distances, members)
        scores.append(np.mean([ratio(densities[j], own) for j in members]))
    return np.array(scores)


def regularised_distances(Z: Floats, support: Floats, ridge: float, inflation: float, center: Floats) -> Floats:
    """Squared distances under ridge * I + (1 - ridge) * inflation * covariance of `support`, by inverting it."""
    K = ridge * np.eye(Z.shape[1]) + (1 - ridge) * inflation * np.cov(support.T, bias=True)
    return np.array([row @ np.linalg.inv(K) @ row for row in Z - center])
