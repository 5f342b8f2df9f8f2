"""Findings: which response of a row is suspicious, why, and what it should have been."""
