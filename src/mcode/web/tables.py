"""What a project consists of, as tables.

`verdicts` is the record: rows are only ever added to it. What a finding's state is follows from its verdicts
(`replay`); `findings.status`, `corrections` and `tallies` repeat it so that no question has to read them all.
"""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, MetaData, Table, Text

FORMAT = 1  # raise it when a project of the old kind can no longer be opened, and say so in docs/review.md

metadata = MetaData()

# What is known of the whole: the source, how it was read and audited, the summary. Values are JSON.
facts = Table("facts", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

responses = Table(
    "responses",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, unique=True),
    Column("choices", Text, nullable=False),  # JSON: how the codes 0, 1, ... are written
    Column("health", Text, nullable=False),  # JSON: what the audit says of it
)

findings = Table(
    "findings",
    metadata,
    Column("row", Integer, primary_key=True, autoincrement=False),  # place in the file, from 0
    Column("id", Text, nullable=False),
    Column("position", Integer, nullable=False),  # order of the queue
    Column("score", Float, nullable=False),
    Column("p_value", Float, nullable=False),
    Column("error_probability", Float, nullable=False),
    Column("response", Integer, nullable=False),  # the one named first
    Column("observed", Integer, nullable=False),
    Column("expected", Integer, nullable=False),
    Column("probability", Float, nullable=False),
    Column("kind", Text, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("latest", Integer, nullable=False),  # last entry of its record, 0 where there is none
    Column("held_by", Text),
    Column("held_until", Float),
    Index("findings_position", "position"),
    Index("findings_status", "status", "position"),
    Index("findings_response", "response", "status", "position"),
    Index("findings_kind", "kind", "status", "position"),
    Index("findings_id", "id"),
)

# What is only needed of a row that is looked at, apart, so that the queue stays small.
details = Table(
    "details",
    metadata,
    Column("row", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("words", Text, nullable=False),  # the context in small letters, for the search
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False, unique=True),  # made by the client: the same verdict sent twice counts once
    Column("row", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("before", Text, nullable=False),  # JSON: response -> code, where it differed from the source
    Column("after", Text, nullable=False),
    Column("seen", Integer, nullable=False),  # last entry of the row's record that the reviewer had seen
    Column("undoes", Integer),
    Column("batch", Text),
    Index("verdicts_row", "row", "seq"),
    Index("verdicts_who", "who", "seq"),
    Index("verdicts_undoes", "undoes"),
    Index("verdicts_batch", "batch"),
    sqlite_autoincrement=True,
)

corrections = Table(
    "corrections",
    metadata,
    Column("row", Integer, primary_key=True, autoincrement=False),
    Column("response", Integer, primary_key=True, autoincrement=False),
    Column("before", Integer, nullable=False),
    Column("after", Integer, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Index("corrections_response", "response"),
)

tallies = Table(
    "tallies",
    metadata,
    Column("status", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("response", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
    Column("expected", Float, nullable=False),  # sum of the error probabilities
)

confusions = Table(
    "confusions",
    metadata,
    Column("response", Integer, primary_key=True, autoincrement=False),
    Column("other", Integer, primary_key=True, autoincrement=False),
    Column("how", Text, primary_key=True),
    Column("number", Integer, nullable=False),
)

views = Table(
    "views",
    metadata,
    Column("name", Text, primary_key=True),
    Column("query", Text, nullable=False),
    Column("who", Text, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("salt", Text, nullable=False),
    Column("digest", Text, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", Text, primary_key=True),  # of the token: whoever reads the file cannot log in with it
    Column("name", Text, nullable=False),
    Column("until", Float, nullable=False),
)
