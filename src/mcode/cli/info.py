"""`mcode info`: what a model file holds."""

from __future__ import annotations

from mcode.cli import options as o
from mcode.cli.console import facts_table, session
from mcode.cli.model_file import facts_of, load_model


def info(model: o.ModelFile, json: o.Json = False, quiet: o.Quiet = False, debug: o.Debug = False) -> None:
    """Say what a model was fitted on, and how a file must look to be scored with it.

    Example: mcode info visits.mcode
    """
    with session(quiet=quiet, as_json=json, debug=debug) as screen:
        saved = load_model(model)
        facts = facts_of(saved.detector, saved.schema)
        screen.emit(facts)
        shown = {
            name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in facts.items()
        }
        facts_table(screen, model.name, shown)
