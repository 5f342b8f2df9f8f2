"""Find rows whose responses do not fit their context: which response is wrong, and what it should have been."""

from mcode import corruption, models, scores
from mcode._progress import reporting
from mcode.detector import MCODE, Audit, JointDetector, audit
from mcode.errors import InputError, McodeError, NotConvergedWarning, ParameterError
from mcode.explain import Finding

__all__ = [
    "MCODE",
    "Audit",
    "Finding",
    "InputError",
    "JointDetector",
    "McodeError",
    "NotConvergedWarning",
    "ParameterError",
    "audit",
    "corruption",
    "models",
    "reporting",
    "scores",
]

__version__ = "0.1.0"
