"""Strands of work in one process and in several."""

import os
from functools import partial

import pytest

from mcode._progress import reporting
from mcode.experiments.side_by_side import run_strands


class Doubling:
    """Each piece doubles what the one before returned: a strand whose pieces must come in order."""

    def __init__(self, start, pieces):
        self.value, self.left, self.processes = start, pieces, set()

    def next_piece(self):
        return partial(double, self.value) if self.left else None

    def take(self, found):
        self.value, process = found
        self.processes.add(process)
        self.left -= 1


def double(value):
    if value < 0:
        raise ValueError("negative")
    return 2 * value, os.getpid()


@pytest.mark.parametrize("jobs", [1, 2])
def test_pieces_of_a_strand_come_in_order_and_all_strands_are_done(jobs):
    strands, seen = [Doubling(start, start % 3) for start in range(1, 8)], []
    with reporting(lambda stage, done, total: seen.append((stage, done, total))):
        run_strands(strands, jobs, "double")
    assert [strand.value for strand in strands] == [start * 2 ** (start % 3) for start in range(1, 8)]
    assert seen[-1] == ("double", 7, 7)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    used = set().union(*(strand.processes for strand in strands))
    assert (used == {os.getpid()}) == (jobs == 1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_piece_raises_ends_the_work(jobs):
    with pytest.raises(ValueError, match="negative"):
        run_strands([Doubling(-1, 1), Doubling(1, 2)], jobs, "double")
