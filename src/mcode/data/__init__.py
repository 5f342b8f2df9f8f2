"""Files and tables -> `Dataset`: context X and responses Y, with names an explanation can use."""

from mcode.data.dataset import Dataset, Schema
from mcode.data.features import Feature
from mcode.data.read import read, stream

__all__ = ["Dataset", "Feature", "Schema", "read", "stream"]
