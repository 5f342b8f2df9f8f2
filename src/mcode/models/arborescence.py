"""The best way to hang every node under one parent, without a circle (Chu & Liu 1965, Edmonds 1967)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats

ROOT = -1  # stands for "no parent"


def best_arborescence(gain: Floats) -> NDArray[np.intp]:
    """Return the parent of each node, or ROOT, so that the gains add up to the most that is possible.

    Parameters
    ----------
    gain : (d, d) array
        gain[i, j] is what node i gains from the parent j; no parent gains 0. The diagonal is not looked at.

    Examples
    --------
    >>> best_arborescence(np.array([[0.0, 5.0], [4.0, 0.0]]))  # both want the other: the larger gain wins
    array([ 1, -1])
    """
    d = len(gain)
    weight = np.full((d + 1, d + 1), -np.inf)  # node 0 is the root: it comes first, so it wins ties
    weight[1:, 1:] = gain
    weight[1:, 0] = 0.0
    np.fill_diagonal(weight, -np.inf)
    levels: list[_Level] = []
    while True:
        parent = weight.argmax(axis=1)
        group = _circles(parent)
        if group.max() == len(parent) - 1:
            break
        levels.append(_Level(weight, parent, group))
        weight = levels[-1].contracted
    for level in reversed(levels):
        parent = level.expand(parent)
    return np.asarray(parent[1:] - 1)


def _circles(parent: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the group of each node: nodes of one circle share a group, all others are alone. The root is group 0."""
    n = len(parent)
    group, n_groups = np.full(n, -1), 1
    seen_in = np.full(n, -1)
    group[0] = 0
    for start in range(1, n):
        node = start
        while node != 0 and seen_in[node] < 0:
            seen_in[node] = start
            node = int(parent[node])
        if node != 0 and seen_in[node] == start:
            while group[node] < 0:
                group[node] = n_groups
                node = int(parent[node])
            n_groups += 1
    alone = np.flatnonzero(group < 0)
    group[alone] = n_groups + np.arange(len(alone))
    return group


class _Level:
    """A graph and the smaller one in which each of its circles is one node."""

    def __init__(self, weight: Floats, parent: NDArray[np.intp], group: NDArray[np.intp]) -> None:
        self.parent, self.group = parent, group
        n, n_small = len(parent), int(group.max()) + 1
        # To enter a circle at some node costs the arc that this node has within the circle.
        own = np.where(np.arange(n) == 0, 0.0, weight[np.arange(n), parent])
        in_circle = np.bincount(group)[group] > 1
        entering = weight - np.where(in_circle, own, 0.0)[:, None]
        self.contracted = np.full((n_small, n_small), -np.inf)
        self.child = np.zeros((n_small, n_small), np.intp)  # which arc of the larger graph each arc stands for
        self.source = np.zeros((n_small, n_small), np.intp)
        best_source = np.zeros((n, n_small), np.intp)
        by_source = np.full((n, n_small), -np.inf)
        for g in range(n_small):
            members = np.flatnonzero(group == g)
            best_source[:, g] = members[entering[:, members].argmax(axis=1)]
            by_source[:, g] = entering[np.arange(n), best_source[:, g]]
        for g in range(n_small):
            members = np.flatnonzero(group == g)
            self.child[g] = members[by_source[members].argmax(axis=0)]
            self.contracted[g] = by_source[self.child[g], np.arange(n_small)]
            self.source[g] = best_source[self.child[g], np.arange(n_small)]
        np.fill_diagonal(self.contracted, -np.inf)
        self.contracted[0] = -np.inf

    def expand(self, parent: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the parents in the larger graph, given those in the smaller one."""
        out = self.parent.copy()
        for g in range(1, len(parent)):
            out[self.child[g, parent[g]]] = self.source[g, parent[g]]
        return out
