"""How a response fits the others *and the others fit it*: both directions of one model of the responses.

Where each response has a conditional of its own, P(y_j | the others) and what y_j does to all P(y_i | the others) are
two estimates of the same dependence, made from different regressions. Together they say more about which response is
wrong than the first alone: were y_j different, the log pseudo-likelihood of the row would rise by

    rise_j = sum_i log P(y_i | the others, with y_j changed) - log P(y_i | the others),

and the probability of y_j, in view of all that, is 1 / (1 + exp(rise_j)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcode._arrays import Floats
from mcode.models.encoding import Codes
from mcode.models.full_conditional import change_linear
from mcode.models.learners import Conditionals
from mcode.models.logistic import LinearConditionals
from mcode.models.parents import all_others

# Of a row, this many responses are asked both ways: those that their own conditional believes least. The others keep
# that conditional; asking all of 983 responses would cost more than fitting them.
ASKED = 32


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
    asked = None if Y.shape[1] <= ASKED else own <= np.partition(own, ASKED - 1, axis=1)[:, ASKED - 1, None]
    nothing = np.empty((len(Y), 0), conditionals.responses.dtype)
    return change_linear(conditionals, all_others(Y.shape[1]), nothing, Y, own.copy(), asked=asked, known=known)
