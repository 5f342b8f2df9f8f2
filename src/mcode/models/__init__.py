"""Conditional models P(y_j | x, parents of j): which responses each response sees, and a learner."""

from mcode.models.classifiers import Boosting, CalibratedSVM, NaiveBayes
from mcode.models.conditional import (
    BinaryRelevance,
    ClassifierChain,
    ConditionalModel,
    DependentRelevance,
)
from mcode.models.learner_names import as_learner
from mcode.models.logistic import BatchLogistic
from mcode.models.mixture import ChainEnsemble, MixtureModel
from mcode.models.names import as_model
from mcode.models.per_label import PerLabel
from mcode.models.tree import TreeRelevance
from mcode.models.trimmed import TrimmedModel

__all__ = [
    "BatchLogistic",
    "BinaryRelevance",
    "Boosting",
    "CalibratedSVM",
    "ChainEnsemble",
    "ClassifierChain",
    "ConditionalModel",
    "DependentRelevance",
    "MixtureModel",
    "NaiveBayes",
    "PerLabel",
    "TreeRelevance",
    "TrimmedModel",
    "as_learner",
    "as_model",
]
