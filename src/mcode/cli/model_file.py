"""A model file holds the detector and the schema of its table, so that a further file is read the same way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcode.data import Schema
from mcode.detector import MCODE


@dataclass(frozen=True)
class SavedModel:
    """A fitted detector, and how to read a file for it."""

    detector: MCODE
    schema: Schema


def save_model(detector: MCODE, schema: Schema, path: Path) -> None:
    """Write a detector with the schema of its table."""
    raise NotImplementedError


def load_model(path: Path) -> SavedModel:
    """Read a model file."""
    raise NotImplementedError


def facts_of(detector: MCODE, schema: Schema) -> dict[str, Any]:
    """Return what a model was fitted on, ready for JSON."""
    reference = detector.reference_score_
    return {
        "responses": list(schema.label_names),
        "context": list(schema.vectoriser.columns),
        "features": detector.n_features_in_,
        "reference rows": 0 if reference is None else len(reference),
        "id column": schema.id_name,
        "tags column": schema.tags_column,
        "model": str(detector.model),
        "score": str(detector.score),
        "estimated share of wrong rows": round(detector.error_rate_, 6),
    }
