"""The examples of the documentation run."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", ["models.md", "song.md"])
def test_the_examples_of_a_page_run(name):
    result = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=FLAGS)
    assert result.attempted
    assert not result.failed
