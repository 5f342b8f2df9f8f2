"""What a record comes to, for every record there can be."""

from hypothesis import given
from hypothesis import strategies as st

from mcode.web.replay import Entry, replay

KINDS = {"accept": {3: 1}, "change": {3: 1, 5: 0}, "keep": {}, "skip": {}}


@st.composite
def records(draw):
    """Draw a record of up to three reviewers who have seen all, some or nothing of what came before."""
    out = []
    for seq in range(1, draw(st.integers(0, 9)) + 1):
        who = draw(st.sampled_from(["anna", "ben", "cleo"]))
        taken = {entry.undoes for entry in out}
        open_ = [e.seq for e in out if e.kind != "undo" and e.who == who and e.seq not in taken]
        if open_ and draw(st.booleans()):
            out.append(Entry(seq, "undo", who, undoes=draw(st.sampled_from(open_))))
        else:
            kind = draw(st.sampled_from(sorted(KINDS)))
            out.append(Entry(seq, kind, who, draw(st.integers(0, seq - 1)), KINDS[kind]))
    return out


def outcome(entry):
    return "skip" if entry.kind == "skip" else tuple(sorted(entry.after.items()))


@given(records())
def test_undoing_everything_opens_the_row(record):
    taken = {entry.undoes for entry in record}
    left = [entry for entry in record if entry.kind != "undo" and entry.seq not in taken]
    undone = [Entry(100 + k, "undo", entry.who, undoes=entry.seq) for k, entry in enumerate(left)]
    assert replay([*record, *undone]).status == "open"


@given(records())
def test_an_undone_verdict_is_as_if_it_had_never_been_given(record):
    taken = {entry.undoes for entry in record}
    never = [entry for entry in record if entry.kind != "undo" and entry.seq not in taken]
    assert replay(record) == replay(never)


@given(records(), st.sampled_from(["accept", "change", "keep"]))
def test_who_has_seen_everything_decides(record, kind):
    last = Entry(100, kind, "dora", seen=99, after=KINDS[kind])
    state = replay([*record, last])
    assert state.status == ("corrected" if KINDS[kind] else "kept")
    assert state.after == KINDS[kind]
    assert state.standing == (100,)


@given(records())
def test_a_conflict_is_two_standing_verdicts_that_differ(record):
    state = replay(record)
    standing = [entry for entry in record if entry.seq in state.standing]
    outcomes = {outcome(entry) for entry in standing} - {"skip"}
    assert (state.status == "conflict") == (len(outcomes) > 1)


@given(records())
def test_one_reviewer_alone_is_never_in_conflict(record):
    mine = [entry for entry in record if entry.who == "anna"]
    assert replay(mine).status != "conflict"


def test_a_skip_leaves_the_verdict_of_another_reviewer_alone():
    record = [Entry(1, "accept", "anna", after={3: 1}), Entry(2, "skip", "ben", seen=1)]
    assert replay(record).status == "corrected"
    assert replay(record[1:]).status == "skipped"


def test_two_who_agree_are_not_in_conflict():
    record = [Entry(1, "accept", "anna", after={3: 1}), Entry(2, "change", "ben", seen=0, after={3: 1})]
    assert replay(record).status == "corrected"
