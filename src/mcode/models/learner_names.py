"""The learners by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mcode.errors import ParameterError, UnknownNameError
from mcode.models.classifiers import Boosting, CalibratedSVM, NaiveBayes
from mcode.models.learners import Learner
from mcode.models.logistic import BatchLogistic
from mcode.models.per_label import PerLabel

LEARNERS: dict[str, Callable[[], Any]] = {
    "logistic": BatchLogistic,
    "svm": lambda: PerLabel(CalibratedSVM()),
    "naive-bayes": lambda: PerLabel(NaiveBayes()),
    "boosting": lambda: PerLabel(Boosting()),
}


def as_learner(learner: Any) -> Learner:
    """Return the learner that a name stands for; None is logistic regression, an instance is returned as it is.

    Examples
    --------
    >>> as_learner("naive-bayes")
    PerLabel(estimator=NaiveBayes())
    """
    if learner is None:
        return BatchLogistic()
    if isinstance(learner, str):
        if learner not in LEARNERS:
            raise UnknownNameError("learner", learner, LEARNERS)
        return cast(Learner, LEARNERS[learner]())
    if not hasattr(learner, "cross_fit"):
        raise ParameterError("learner", learner, "a learner such as BatchLogistic() or PerLabel(classifier)")
    return cast(Learner, learner)
