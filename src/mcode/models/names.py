"""The models by name."""

from __future__ import annotations

from mcode.errors import UnknownNameError
from mcode.models.conditional import BinaryRelevance, ClassifierChain, ConditionalModel, DependentRelevance
from mcode.models.mixture import ChainEnsemble, MixtureModel
from mcode.models.tree import TreeRelevance

MODELS: dict[str, type[ConditionalModel]] = {
    "br": BinaryRelevance,
    "chain": ClassifierChain,
    "dbr": DependentRelevance,
    "tree": TreeRelevance,
    "chain-ensemble": ChainEnsemble,
    "mixture": MixtureModel,
}


def as_model(model: str | ConditionalModel, learner: str | None = None) -> ConditionalModel:
    """Return the model that a name stands for, with a learner by name; an instance is returned as it is.

    Examples
    --------
    >>> as_model("br")
    BinaryRelevance()
    >>> as_model("tree", "svm")
    TreeRelevance(learner='svm')
    """
    if isinstance(model, ConditionalModel):
        return model
    if not isinstance(model, str) or model not in MODELS:
        raise UnknownNameError("model", model, MODELS)
    return MODELS[model](learner=learner)
