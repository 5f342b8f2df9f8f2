"""Tasks of the solver over small tables, and what fitting them label by label gives."""

import numpy as np

from mcode.models import parents as see
from mcode.solvers.fit import Task
from oracles import fit_label_by_label

MASKS = {"br": see.none, "chain": lambda d: see.chain([2, 0, 3, 1], d), "dbr": see.all_others}
TIGHT = 1e-7


def make_task(X, Y, mask, weight=None):
    parents = MASKS[mask](Y.shape[1])
    if parents.any():
        return Task(X, Y, Y, parents.T, weight)
    return Task(X, Y[:, :0], Y, np.ones((0, Y.shape[1]), bool), weight)


def expected_of(task, penalty):
    return fit_label_by_label(task.X, task.parents, task.target, task.free, penalty, task.weight)
