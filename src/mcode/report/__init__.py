"""Findings and results -> text, tables and pages: pure functions that print nothing and open no file."""

from mcode.report.page import html_page
from mcode.report.summary import Cut, Summary, summarise
from mcode.report.table import findings_table, ranked_table
from mcode.report.text import summary_lines

__all__ = ["Cut", "Summary", "findings_table", "html_page", "ranked_table", "summarise", "summary_lines"]
