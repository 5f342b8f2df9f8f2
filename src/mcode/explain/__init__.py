"""Findings: which response of a row is suspicious, why, and what it should have been."""

from mcode.detector.judged import register_explainer
from mcode.explain.explain import explain_rows
from mcode.explain.finding import Change, Evidence, Finding, Repair, ResponseFinding

__all__ = ["Change", "Evidence", "Finding", "Repair", "ResponseFinding", "explain_rows"]

register_explainer(explain_rows)
