"""A body as an object of its kind, and what is said about it: warnings, or a refusal, as the client asked."""

from collections.abc import Sequence

import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import failures, lifecycle, repeats
from trainmaster.cluster.apiserver.identity import Misplaced, Unrecognized
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.options import Options


def new(kind: Kind, body: Json, options: Options, *, known: bool = False) -> tuple[Object, list[str]]:
    """What a creation sent, and the warnings; `known`: the same spec was read before. Raises Failure 400."""
    thing, unknown = lifecycle.readable(kind, body, {"spec": body["spec"]} if known else None)
    return thing, _judged(kind, unknown, options)


def absent(kind: Kind, body: Json, name: str, namespace: str, options: Options) -> None:
    """What is wrong with an object that was to replace one that is not there. Raises Failure 400."""
    thing, _ = new(kind, body, options)
    lifecycle.addressed(thing["metadata"], name, namespace)


def edited(kind: Kind, old: Object, found: Json, options: Options) -> tuple[Object, list[str]]:
    """An object after an edit, and the warnings. Raises Failure."""
    try:
        thing, unknown = lifecycle.readable(kind, found, old, patched=options.patched)
        return thing, _judged(kind, unknown, options)
    except (lifecycle.Unreadable, Misplaced, Unrecognized) as error:
        if options.patched:
            raise failures.invalid_patch(orjson.dumps(found).decode(), error.why) from error
        raise


def _judged(kind: Kind, unknown: Sequence[str], options: Options) -> list[str]:
    """What is said about fields that were dropped or came twice: nothing, warnings, or (Strict) Failure 400."""
    typed = not kind.custom and not options.patched
    if options.repeats is None:
        said = repeats.told(unknown if typed else sorted(unknown))
    else:
        said = options.repeats.findings(unknown, typed=typed)
    if said and options.validation == "Strict":
        error = options.repeats.error(said) if options.repeats else ", ".join(said)
        raise lifecycle.Unreadable(kind, f"strict decoding error: {error}")
    return said if options.validation == "Warn" else []
