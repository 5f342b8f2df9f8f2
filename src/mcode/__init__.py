"""Find rows whose responses do not fit their context: which response is wrong, and what it should have been."""

from mcode import corruption, explain, models, scores
from mcode._progress import reporting
from mcode.data import Dataset, read
from mcode.detector import MCODE, Audit, JointDetector, SongCAD, audit
from mcode.errors import DataFormatError, InputError, McodeError, NotConvergedWarning, ParameterError
from mcode.persist import load, save

__all__ = [
    "MCODE",
    "Audit",
    "DataFormatError",
    "Dataset",
    "InputError",
    "JointDetector",
    "McodeError",
    "NotConvergedWarning",
    "ParameterError",
    "SongCAD",
    "audit",
    "corruption",
    "explain",
    "load",
    "models",
    "read",
    "reporting",
    "save",
    "scores",
]

__version__ = "0.1.0"
