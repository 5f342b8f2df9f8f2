"""How a response fits the others *and the others fit it*: both directions of one model of the responses.

Where each response has a conditional of its own, P(y_j | the others) and what y_j does to all P(y_i | the others) are two
estimates of the same dependence, made from different regressions. Together they say more about which response is wrong
than the first alone: were y_j different, the log pseudo-likelihood of the row would rise by

    rise_j = sum_i log P(y_i | the others, with y_j changed) - log P(y_i | the others),

and the probability of y_j, in view of all that, is 1 / (1 + exp(rise_j)).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.models.encoding import Codes
from mcode.models.learners import Conditionals
from mcode.models.logistic import LinearConditionals
from mcode.solvers.threads import run_all

# Of a row, this many responses are asked both ways: those that their own conditional believes least. The others keep
# that conditional; asking all of 983 responses would cost more than fitting them.
ASKED = 32
ROWS_AT_ONCE = 1024
LARGEST_LOGIT = 200.0  # so that a product of two exponentials and of a running product stays a number


def mutual_log_proba(
    conditionals: Conditionals, Y: Codes, own: Floats, known: NDArray[np.bool_] | None = None
) -> Floats:
    """Return log P(y_j) by both directions of a model that has no context, shape (n, d).

    Parameters
    ----------
    conditionals : of each response given all others
    Y : (n, d) codes
    own : (n, d) log P(y_j | the others) by these conditionals
    known : (n, d) boolean array, or None where no response is missing
        A missing response says nothing of the others.

    Only logistic regressions of responses with two values are asked both ways; of others `own` is all there is.
    """
    if not isinstance(conditionals, LinearConditionals) or conditionals.responses is None:
        return own.copy()
    out = own.copy()
    weights = np.clip(conditionals.responses.astype(np.float64), -LARGEST_LOGIT, LARGEST_LOGIT)
    towards_one = np.exp(weights)
    nothing = np.empty((len(Y), 0), conditionals.responses.dtype)

    def read(rows: slice) -> None:
        logits = conditionals.logits(nothing[rows], Y[rows]).astype(np.float64)
        np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT, out=logits)
        there = np.ones(Y[rows].shape, np.bool_) if known is None else known[rows]
        _ask_both_ways(logits, towards_one, 1.0 / towards_one, Y[rows], there, ASKED, out[rows])

    run_all([partial(read, slice(start, start + ROWS_AT_ONCE)) for start in range(0, len(Y), ROWS_AT_ONCE)])
    return out


@njit(cache=True, nogil=True)
def _ask_both_ways(eta: Any, up: Any, down: Any, Y: Any, known: Any, asked: Any, out: Any) -> None:
    """Write log P(y_j) of the `asked` least believed responses of each row.

    -log P(y_i) = log(1 + e_i) with e_i = exp(-eta_i) or exp(eta_i). Changing y_j multiplies e_i by exp of a
    coefficient, so the rise is the logarithm of a product, taken seldom.
    """
    n, d = Y.shape
    e, inverse = np.empty(d), np.empty(d)
    for row in range(n):
        for i in range(d):
            e[i] = np.exp(-eta[row, i] if Y[row, i] else eta[row, i]) if known[row, i] else 0.0
            inverse[i] = 1.0 / (1.0 + e[i])
        least = np.partition(e, d - asked)[d - asked] if asked < d else -1.0
        for j in range(d):
            if not known[row, j] or e[j] < least:
                continue
            rise, product = np.log(e[j]), 1.0
            for i in range(d):
                if i != j:
                    factor = up[j, i] if Y[row, i] == Y[row, j] else down[j, i]
                    product *= (1.0 + e[i] * factor) * inverse[i]
                    if product > 1e100 or product < 1e-100:
                        rise -= np.log(product)
                        product = 1.0
            rise -= np.log(product)
            out[row, j] = -np.log1p(np.exp(rise)) if rise < 0.0 else -rise - np.log1p(np.exp(-rise))
