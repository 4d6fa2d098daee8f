"""How a request wants to be carried out: dry runs, deletions, what to do about unknown fields."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import builtin, causes, failures, inspection, managers
from trainmaster.cluster.apiserver.bodies import as_object
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.lifecycle import DeleteOptions
from trainmaster.cluster.apiserver.repeats import Repeats
from trainmaster.cluster.apiserver.routing import Query

VALIDATIONS = ("", "Ignore", "Strict", "Warn")
PROPAGATIONS = ("Foreground", "Background", "Orphan")
# What the options of each verb are called when something is wrong with them.
_NAMES = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


@dataclass(frozen=True, slots=True)
class Options:
    """How a write was asked for."""

    dry_run: bool = False
    validation: str = "Warn"             # fieldValidation: Ignore, Warn or Strict
    repeats: Repeats | None = None       # keys that are in the body twice
    patched: bool = False                # what is written comes from a patch and not from a body
    manager: str | None = None           # who owns what is written; None: nobody, the server acts on its own
    applied: bool = False                # what is written comes from a configuration, and says itself who owns it
    force: bool = False                  # a configuration that takes what others own


def write_options(query: Query, verb: str, repeats: Repeats | None = None, agent: str = "", *,
                  applied: bool = False) -> Options:
    """How a client wants something written; `agent` is the program it says it is. Raises Failure 422."""
    if not query.pairs and not applied:
        return Options(repeats=repeats, patched=verb == "patch", manager=managers.of_user_agent(agent))
    validation, name = query.text("fieldValidation"), _NAMES.get(verb, "UpdateOptions")
    if validation not in VALIDATIONS:
        raise _refused(name, causes.unsupported("fieldValidation", validation, VALIDATIONS))
    manager = query.text("fieldManager")
    faults = list(_manager_faults(manager))
    if applied and not manager:
        faults = [causes.required("fieldManager", "is required for apply patch"), *faults]
    if verb == "patch" and not applied and query.text("force"):
        faults = [causes.forbidden("force", "may not be specified for non-apply patch"), *faults]
    if faults:
        raise _refused(name, *faults)
    return Options(dry_run(query.all("dryRun"), name), validation or "Warn", repeats, verb == "patch",
                   manager or managers.of_user_agent(agent), applied, query.flag("force"))


def delete_options(body: Json, query: Query) -> DeleteOptions:
    """Options of a deletion, from the body or, where that says nothing, from the query. Raises Failure 400 or 422."""
    given = as_object(body) if body is not None else {}
    if given.get("kind") not in (None, "", "DeleteOptions"):      # any JSON may stand there, and not all can be hashed
        raise failures.bad_request(f"the kind in the data ({given['kind']}) does not match the expected kind "
                                   "(DeleteOptions)")
    if (faults := inspection.inspect(given, _delete_options()).faults):
        raise failures.bad_request(f"DeleteOptions: {faults[0]}")
    found = given.get("gracePeriodSeconds")
    grace: int | None = query.number("gracePeriodSeconds") if found is None else int(found)
    propagation = given.get("propagationPolicy") or query.text("propagationPolicy")
    orphan = given.get("orphanDependents")
    if orphan is None and query.text("orphanDependents"):
        orphan = query.flag("orphanDependents")
    if propagation and propagation not in PROPAGATIONS:
        raise _refused("DeleteOptions", causes.unsupported("propagationPolicy", propagation, (*PROPAGATIONS, "nil")))
    if propagation and orphan is not None:
        raise _refused("DeleteOptions", causes.invalid("propagationPolicy", propagation, "orphanDependents and "
                                                       "deletionPropagation cannot be both set"))
    if not propagation and orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    before = given.get("preconditions") or {}
    dry = dry_run([*(given.get("dryRun") or ()), *query.all("dryRun")], "DeleteOptions")
    return DeleteOptions(grace, before.get("uid") or "", before.get("resourceVersion") or "", propagation, dry)


def dry_run(given: Sequence[str], name: str) -> bool:
    if any(value != "All" for value in given):
        raise _refused(name, causes.unsupported("dryRun", list(given), ("All",)))
    return bool(given)


def _delete_options() -> builtin.Type:
    found = builtin.shape_of("v1", "DeleteOptions")
    assert found is not None
    return found


def _manager_faults(manager: str) -> Iterator[Cause]:
    if len(manager.encode()) > managers.LONGEST_NAME:
        yield causes.too_long("fieldManager", managers.LONGEST_NAME)
    at = 0
    for sign in manager:
        if not sign.isprintable():
            yield causes.invalid("fieldManager", manager, f"invalid character U+{ord(sign):04X} (at position {at})")
        at += len(sign.encode())


def _refused(name: str, *found: Cause) -> failures.Failure:
    return failures.invalid_kind(name, "meta.k8s.io", "", found)
