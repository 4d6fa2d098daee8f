"""The page about the operator has every flag, metric and right."""

from tools import operator_page


def test_the_tables_are_what_the_code_says() -> None:
    page = operator_page.PAGE.read_text()

    assert operator_page.rewritten(page) == page, "run python tools/operator_page.py"
