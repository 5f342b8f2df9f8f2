"""A summary in plain sentences."""

from __future__ import annotations

from mcode.report.summary import Cut, Summary
from mcode.report.words import count_of, percent


def summary_lines(summary: Summary) -> list[str]:
    """Return what was audited and how many rows are flagged, as sentences."""
    lines = [audited_line(summary), cut_line(summary.cut), share_line(summary)]
    if summary.one_valued:
        lines.append(f"One value only, so nothing to audit: {_listed(summary.one_valued)}.")
    return lines


def audited_line(summary: Summary) -> str:
    """Say what was audited."""
    return (
        f"{summary.source}: {count_of(summary.n_rows, 'row')}, {count_of(summary.n_responses, 'response')}, "
        f"{count_of(summary.n_features, 'feature')} (model {summary.model}, score {summary.score})."
    )


def cut_line(cut: Cut) -> str:
    """Say how many rows are flagged, why so many, and how many false alarms to expect among them.

    Examples
    --------
    >>> cut_line(Cut("fdr", 0.1, 40, 2.6))
    '40 rows are flagged at a false-discovery rate of 10 %; expect about 3 false alarms among them.'
    >>> cut_line(Cut("fdr", 0.1, 0, 0.0))
    'No row is flagged at a false-discovery rate of 10 %.'
    """
    how = {
        "fdr": f"at a false-discovery rate of {percent(cut.level)}",
        "top": f"because the top {cut.level:.0f} were asked for",
        "rate": f"as the most suspicious {percent(cut.level)} of all rows",
    }[cut.kind]
    if cut.n_flagged == 0:
        return f"No row is flagged {how}."
    flagged = "1 row is" if cut.n_flagged == 1 else f"{cut.n_flagged:,} rows are"
    return f"{flagged} flagged {how}; expect {_about(cut.expected_false_alarms)} among them."


def share_line(summary: Summary) -> str:
    """Say how many rows are estimated to be wrong."""
    wrong = count_of(round(summary.error_rate * summary.n_rows), "row")
    return f"Estimated share of wrong rows: {percent(summary.error_rate)} (about {wrong})."


def _about(alarms: float) -> str:
    if alarms < 0.5:
        return "hardly a false alarm"
    return f"about {count_of(round(alarms), 'false alarm')}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
