"""Log lines: what a person reads and what a machine parses."""

import io
import logging
from collections.abc import Iterator

import orjson
import pytest

from trainmaster.runtime.log import Logger, logger, setup


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Logging is one per process: put it back."""
    top, ours = logging.getLogger(), logging.getLogger("trainmaster")
    handlers, levels = top.handlers[:], (top.level, ours.level)
    yield
    top.handlers[:] = handlers
    top.setLevel(levels[0])
    ours.setLevel(levels[1])


def written(level: str, json: bool, write: "Writing") -> str:
    stream = io.StringIO()
    setup(level, json, stream)
    write(logger("operator"))
    return stream.getvalue()


class Writing:
    """One call of a logger, as a row of a table."""

    def __init__(self, verb: str, message: str, **fields: object) -> None:
        self._verb, self._message, self._fields = verb, message, fields

    def __call__(self, log: Logger) -> None:
        getattr(log, self._verb)(self._message, **self._fields)


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        pytest.param(Writing("info", "pod created"), "INFO operator: pod created", id="a message"),
        pytest.param(
            Writing("warning", "waits", ready=3, job="a"), "WARNING operator: waits ready=3 job=a", id="with fields"
        ),
        pytest.param(Writing("error", "x", cause="a b"), 'ERROR operator: x cause="a b"', id="spaces are quoted"),
        pytest.param(Writing("error", "x", cause='say "a"'), r'ERROR operator: x cause="say \"a\""', id="quotes, too"),
        pytest.param(Writing("error", "x", cause=""), 'ERROR operator: x cause=""', id="nothing is shown as nothing"),
        pytest.param(
            Writing("info", "x", name="a\n2030 ERROR fake"), r'INFO operator: x name="a\n2030 ERROR fake"',
            id="foreign text cannot make up a line",
        ),
        pytest.param(Writing("info", "100% of %s"), "INFO operator: 100% of %s", id="percent signs mean themselves"),
        pytest.param(Writing("debug", "why"), "", id="below the level: nothing"),
    ],
)
def test_text_lines(write: Writing, expected: str) -> None:
    line = written("info", False, write)

    assert expected == line.strip().partition(" ")[2]


def test_a_json_line_has_the_fields_beside_the_message() -> None:
    line = orjson.loads(written("debug", True, Writing("debug", "why", count=3, key=("a", "b"), message_id="m")))

    assert line.pop("time").endswith("Z")
    assert {
        "level": "debug", "name": "operator", "message": "why", "count": 3, "key": ["a", "b"], "message_id": "m",
    } == line


@pytest.mark.parametrize("json", [True, False], ids=["json", "text"])
def test_an_exception_comes_with_its_traceback(json: bool) -> None:
    def write(log: Logger) -> None:
        try:
            raise ValueError("the cause")
        except ValueError:
            log.exception("failed")

    stream = io.StringIO()
    setup("info", json, stream)
    write(logger("operator"))

    assert "ValueError: the cause" in stream.getvalue()
    assert (1 if json else 2) <= len(stream.getvalue().splitlines())


def test_libraries_are_heard_from_warning_on() -> None:
    stream = io.StringIO()
    setup("debug", False, stream)
    logging.getLogger("aiohttp").info("chatter")
    logging.getLogger("aiohttp").warning("trouble")

    assert "aiohttp: trouble" in stream.getvalue()
    assert "chatter" not in stream.getvalue()
