"""A model file holds the detector and the schema of its table, so that a further file is read the same way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcode.data import Schema
from mcode.data.stored_types import STORED_TYPES
from mcode.detector import MCODE
from mcode.errors import DataFormatError
from mcode.persist import load_with_schema, save


@dataclass(frozen=True)
class SavedModel:
    """A fitted detector, and how to read a file for it."""

    detector: MCODE
    schema: Schema


def save_model(detector: MCODE, schema: Schema, path: Path) -> None:
    """Write a detector with the schema of its table."""
    save(detector, path, schema=schema, schema_types=STORED_TYPES)


def load_model(path: Path) -> SavedModel:
    """Read a model file, or say in one sentence why it cannot be used."""
    detector, schema = load_with_schema(path, STORED_TYPES)
    if not isinstance(detector, MCODE):
        raise DataFormatError(path, reason="it holds a detector that does not tell context from responses")
    if not isinstance(schema, Schema):
        raise DataFormatError(
            path, reason="it does not say how a table is read, because it was saved from Python; use `mcode fit`"
        )
    return SavedModel(detector, schema)


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
