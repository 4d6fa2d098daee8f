"""One line per decision: a constant message and fields, as text for people or JSON for machines.

On top of the standard library's logging, so that lines of libraries and of tests arrive at the same place; a thin
object around it, since fields as keyword arguments are what keeps messages constant.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

ROOT = "trainmaster"


class Logger:
    """Writes messages with fields. Values are printed; never give it environment values, tokens or whole objects."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{name}")

    def debug(self, message: str, **fields: object) -> None:
        self._write(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: object) -> None:
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, **fields: object) -> None:
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, **fields: object) -> None:
        self._write(logging.ERROR, message, fields)

    def exception(self, message: str, **fields: object) -> None:
        """An error with the traceback of the exception that is being handled."""
        self._write(logging.ERROR, message, fields, traceback=True)

    def _write(self, level: int, message: str, fields: dict[str, object], *, traceback: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, message, exc_info=traceback or None, extra={"fields": fields}, stacklevel=3)


def logger(name: str) -> Logger:
    """The logger of one part of the system; `name` is what its lines are found by."""
    return Logger(name)


def setup(level: str = "info", json: bool = False, stream: TextIO | None = None) -> None:
    """Send every line to `stream` (stderr by default). Libraries are heard from warning on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if json else TextLines())
    top = logging.getLogger()
    for old in top.handlers[:]:
        top.removeHandler(old)
    top.addHandler(handler)
    top.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level.upper())


class TextLines(logging.Formatter):
    """`TIME LEVEL name: message key=value`, and the traceback on the lines below."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_printed(value)}" for name, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname} {_name(record)}: {_one_line(record.getMessage())}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One JSON object per line; fields come beside `time`, `level`, `name` and `message`, which they cannot replace."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            **_fields(record),
            "time": _time(record),
            "level": record.levelname.lower(),
            "name": _name(record),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _fields(record: logging.LogRecord) -> dict[str, object]:
    found = getattr(record, "fields", None)
    return found if isinstance(found, dict) else {}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _name(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{ROOT}.")


def _one_line(text: str) -> str:
    """Foreign text must not be able to make up lines of its own."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _printed(value: object) -> str:
    text = _one_line(str(value))
    if text and not any(c in text for c in ' "='):
        return text
    return '"' + text.replace('"', '\\"') + '"'
