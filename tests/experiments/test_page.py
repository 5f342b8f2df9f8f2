"""The page on the experiments and the README show the stored results, and nothing else."""

import importlib.util
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def page_module():
    path = PROJECT / "benchmarks" / "experiments_page.py"
    spec = importlib.util.spec_from_file_location("experiments_page", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_and_figures_of_the_page_are_those_of_the_results():
    module = page_module()
    page = module.PAGE.read_text(encoding="utf-8")
    assert module.TABLE.search(page)
    assert module.filled(page) == page
    for folder, name in module.IMAGE.findall(page):
        stored = (module.RESULTS / folder / name).read_bytes()
        assert (module.IMAGES / f"{folder}-{name}").read_bytes() == stored


def test_the_short_table_of_the_readme_is_that_of_the_results():
    module = page_module()
    readme = module.README.read_text(encoding="utf-8")
    assert module.SHORT_TABLE.search(readme)
    assert module.with_short_table(readme) == readme
