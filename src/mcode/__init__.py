"""Find rows whose responses do not fit their context."""
