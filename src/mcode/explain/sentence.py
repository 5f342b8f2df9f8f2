"""One plain sentence about one response."""

from __future__ import annotations

from collections.abc import Sequence

from mcode.explain.finding import Evidence, Value
from mcode.explain.labels import is_present

MOST_NAMED = 3
SMALLEST_SHARE_NAMED = 0.15  # evidence that moved the log odds by less than this share of the strongest is not said


def sentence(
    name: str,
    observed: Value,
    expected: Value,
    probability: float,
    evidence: Sequence[Evidence],
    together: str = "",
    *,
    of_many: bool = False,
) -> str:
    """Say what was observed, how likely that is, and what speaks against it.

    Parameters
    ----------
    name, observed, expected : the response, its recorded value and the one it should have
    probability : of the recorded value
    evidence : strongest first; positive weights speak for the expected value
    together : the name of another response, where only a change of both makes the row ordinary
    of_many : whether the response has more than two values, so that the expected one has to be named

    Examples
    --------
    >>> evidence = [Evidence("response", "diabetes", 1, 2.0), Evidence("feature", "hba1c", 9.1, 1.5)]
    >>> sentence("insulin", 0, 1, 0.03, evidence)
    '`insulin` is absent (3 % likely) although `diabetes` and `hba1c = 9.1` are present.'
    >>> sentence("grade", "B", "A", 0.2, [])
    '`grade` is B (20 % likely): it is usually A.'
    >>> sentence("severity", "mild", "severe", 0.03, evidence[1:], of_many=True)
    '`severity` is `mild` (3 % likely), expected `severe`, although `hba1c = 9.1`.'
    """
    start = f"`{name}` is {_one_of_many(observed) if of_many else _word(observed)}"
    if observed == expected:
        return f"{start}, as expected ({percent(probability)} likely)."
    start += f" ({percent(probability)} likely)"
    if together and probability >= 0.5:
        return f"{start}, but changed together with `{together}` the row becomes ordinary."
    reasons = _reasons([piece for piece in evidence if piece.weight > 0])
    if of_many:
        start += f", expected {_one_of_many(expected)}"
        return f"{start}, although {reasons}." if reasons else f"{start}."
    return f"{start} although {reasons}." if reasons else f"{start}: it is usually {_word(expected)}."


def percent(probability: float) -> str:
    """Return a probability as a person says it.

    Examples
    --------
    >>> percent(0.031), percent(0.0001), percent(0.9999)
    ('3 %', 'less than 1 %', 'more than 99 %')
    """
    if probability < 0.005:
        return "less than 1 %"
    return "more than 99 %" if probability > 0.995 else f"{100 * probability:.0f} %"


def _one_of_many(value: Value) -> str:
    return "missing" if value is None else f"`{value}`"


def _word(value: Value) -> str:
    present = is_present(value)
    if value is None:
        return "missing"
    return str(value) if present is None else ("present" if present else "absent")


def _reasons(evidence: Sequence[Evidence]) -> str:
    """Return the strongest pieces of evidence as a clause: those that are there, then those that are missing."""
    strong = [piece for piece in evidence[:MOST_NAMED] if piece.weight >= SMALLEST_SHARE_NAMED * evidence[0].weight]
    there = [piece for piece in strong if is_present(piece.value) is not False]
    absent = [f"`{piece.name}`" for piece in strong if is_present(piece.value) is False]
    clauses = []
    if there:
        names = _listed([_name(piece) for piece in there])
        plain = all(is_present(piece.value) is None for piece in there)  # "hba1c = 9.1" needs no verb of its own
        clauses.append(names if plain and not absent else f"{names} {_verb(there)} present")
    if absent:
        clauses.append(f"{_listed(absent)} {_verb(absent)} absent")
    return " and ".join(clauses)


def _name(piece: Evidence) -> str:
    return f"`{piece.name}`" if is_present(piece.value) else f"`{piece.name} = {piece.value}`"


def _verb(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
