"""Which programs are asked before a write, as objects: MutatingWebhookConfiguration, ValidatingWebhookConfiguration.

Here is what these two kinds may say and what is filled in. Whom a webhook concerns is `matching`, what is sent to it
`reviews`, when it is asked `chain`.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, columns, expressions, labels, match_conditions, names
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.expressions import Absent, Unusable
from trainmaster.cluster.apiserver.kind import Column, Kind
from trainmaster.cluster.apiserver.rows import row

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"/{GROUP}/mutatingwebhookconfigurations/", f"/{GROUP}/validatingwebhookconfigurations/"
REVIEW_VERSIONS = ("v1", "v1beta1")
MOST_CONDITIONS = 64

_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_FORM = "; desired format: https://host[/path]"
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")


def _defaults(configuration: Object) -> None:
    for hook in configuration.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


def _mutating_defaults(configuration: Object) -> None:
    _defaults(configuration)
    for hook in configuration.get("webhooks") or ():
        hook.setdefault("reinvocationPolicy", "Never")


def _rules(configuration: Object, old: Object | None) -> Iterator[Cause]:
    taken: set[str] = set()
    was = [hook.get("matchConditions") for hook in (old or {}).get("webhooks") or ()]
    hooks = configuration.get("webhooks") or []
    changed = was != [hook.get("matchConditions") for hook in hooks]
    for index, hook in enumerate(hooks):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _hook_faults(hook, path)
        if changed:
            yield from _condition_faults(hook.get("matchConditions") or [], f"{path}.matchConditions")
        yield from _version_faults(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")
        if name and name in taken:
            yield causes.duplicate(f"{path}.name", name)
        taken.add(name)


def _hook_faults(hook: Object, path: str) -> Iterator[Cause]:
    yield from _name_faults(hook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from _rule_faults(rule, f"{path}.rules[{index}]")
    yield from checks.choice(hook.get("failurePolicy"), f"{path}.failurePolicy", ("Fail", "Ignore"))
    yield from checks.choice(hook.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    if hook.get("sideEffects") is None:
        yield causes.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    yield from checks.choice(hook.get("sideEffects"), f"{path}.sideEffects", _SIDE_EFFECTS)
    if not 1 <= hook["timeoutSeconds"] <= 30:
        yield causes.invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"],
                             "the timeout value must be between 1 and 30 seconds")
    for selector in ("namespaceSelector", "objectSelector"):
        yield from labels.rules(hook.get(selector) or {}, f"{path}.{selector}")
    yield from checks.choice(hook.get("reinvocationPolicy"), f"{path}.reinvocationPolicy", ("IfNeeded", "Never"))
    yield from client_faults(hook.get("clientConfig") or {}, f"{path}.clientConfig")


def _name_faults(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield causes.required(path)
    elif faults := names.subdomain(name):
        yield causes.invalid(path, name, ",".join(faults))
    elif name.count(".") < 2:
        yield causes.invalid(path, name, "should be a domain with at least three segments separated by dots")


def _rule_faults(rule: Object, path: str) -> Iterator[Cause]:
    operations = rule.get("operations") or []
    yield from _listed(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        yield from checks.choice(operation, f"{path}.operations[{index}]", _OPERATIONS)
    yield from _listed(rule.get("apiGroups") or [], f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or []
    yield from _listed(versions, f"{path}.apiVersions", "API versions")
    for index, version in enumerate(versions):
        if not version:
            yield causes.required(f"{path}.apiVersions[{index}]")
    yield from _resource_faults(rule.get("resources") or [], f"{path}.resources")
    yield from checks.choice(rule.get("scope"), f"{path}.scope", _SCOPES)


def _listed(found: list[str], path: str, what: str) -> Iterator[Cause]:
    if not found:
        yield causes.required(path)
    if len(found) > 1 and "*" in found:
        yield causes.invalid(path, found, f"if '*' is present, must not specify other {what}")


def _resource_faults(found: list[str], path: str) -> Iterator[Cause]:
    if not found:
        yield causes.required(path)
    of_all: set[str] = set()           # x of x/*
    of_any: set[str] = set()           # x of */x
    plain = False
    for index, each in enumerate(found):
        resource, slash, part = each.partition("/")
        if not each:
            yield causes.required(f"{path}[{index}]")
        if not slash:
            plain = bool(each) and each != "*" if each else plain
            continue
        for seen, one, form in ((of_all, resource, f"{resource}/*"), (of_any, part, f"*/{part}")):
            if one in seen:
                yield causes.invalid(f"{path}[{index}]", each, f"if '{form}' is present, must not specify {each}")
        if part == "*":
            of_all.add(resource)
        if resource == "*":
            of_any.add(part)
    if len(found) > 1 and "*/*" in found:
        yield causes.invalid(path, found, "if '*/*' is present, must not specify other resources")
    if "*" in found and plain:
        yield causes.invalid(path, found,
                             "if '*' is present, must not specify other resources without subresources")


def _version_faults(versions: list[str], path: str) -> Iterator[Cause]:
    listed = ", ".join(REVIEW_VERSIONS)
    if not versions:
        yield causes.required(path, f"must specify one of {listed}")
    else:
        yield from review_version_faults(versions, path)


def review_version_faults(versions: list[str], path: str) -> Iterator[Cause]:
    """Of versions of reviews that somebody says to understand, if any."""
    listed = ", ".join(REVIEW_VERSIONS)
    taken: set[str] = set()
    for index, version in enumerate(versions):
        if version in taken:
            yield causes.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            taken.add(version)
            yield from names.refused(f"{path}[{index}]", version, names.older_label_1035(version))
    if not set(versions) & set(REVIEW_VERSIONS):
        yield causes.invalid(path, versions, f"must include at least one of {listed}")


def client_faults(client: Object, path: str) -> Iterator[Cause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield causes.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_faults(url, f"{path}.url")
    elif service is not None:
        yield from _service_faults(service, f"{path}.service")


def _url_faults(url: str, path: str) -> Iterator[Cause]:
    try:
        parts = urlsplit(url)
        parts.port      # noqa: B018  raises for what is no number
    except ValueError as error:
        yield causes.required(path, f"url must be a valid URL: parse {causes.quoted(url)}: {error}{_FORM}")
        return
    if escape := _BAD_ESCAPE.search(parts.path):
        why = f'parse {causes.quoted(url)}: invalid URL escape "{escape[0]}"'
        yield causes.required(path, f"url must be a valid URL: {why}{_FORM}")
        return
    if parts.scheme != "https":
        yield causes.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    user, at, host = parts.netloc.rpartition("@")
    if not host:
        yield causes.invalid(path, "", f"host must be specified{_FORM}")
    if at:
        yield causes.invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield causes.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield causes.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service_faults(service: Object, path: str) -> Iterator[Cause]:
    # A real server takes the one for the other when it says which is missing.
    for field, told in (("namespace", "name"), ("name", "namespace")):
        if not service.get(field):
            yield causes.required(f"{path}.{told}")
    if not 1 <= service["port"] <= checks.LARGEST_PORT:
        yield causes.invalid(f"{path}.port", service["port"],
                             f"port is not valid: must be between 1 and {checks.LARGEST_PORT}, inclusive")
    where = service.get("path") or "/"
    if where == "/":
        return
    if where == "//":
        yield causes.invalid(f"{path}.path", where, "segment[0] may not be empty")
        return
    if not where.startswith("/"):
        yield causes.invalid(f"{path}.path", where, "must start with a '/'")
    for index, segment in enumerate(where[1:].removesuffix("/").split("/")):
        if not segment:
            yield causes.invalid(f"{path}.path", where, f"segment[{index}] may not be empty")
            continue
        for fault in names.subdomain(segment):
            yield causes.invalid(f"{path}.path", where, f"segment[{index}]: {fault}")


def _condition_faults(conditions: list[Object], path: str) -> Iterator[Cause]:
    if len(conditions) > MOST_CONDITIONS:
        yield causes.too_many(path, len(conditions), MOST_CONDITIONS)
    taken: set[str] = set()
    for index, condition in enumerate(conditions):
        name = condition.get("name") or ""
        if not (condition.get("expression") or "").strip():
            yield causes.required(f"{path}[{index}].expression")
        else:
            yield from _expression_faults(condition["expression"], f"{path}[{index}].expression")
        if not name:
            yield causes.required(f"{path}[{index}].name")
        else:
            yield from names.refused(f"{path}[{index}].name", name, names.qualified(name))
        if name and name in taken:
            yield causes.duplicate(f"{path}[{index}].name", name)
        taken.add(name)


def _expression_faults(text: str, path: str) -> Iterator[Cause]:
    try:
        expressions.compiled(text, *match_conditions.VARIABLES)
    except Absent:      # fails when it is asked, as the failure policy says
        return
    except Unusable as why:
        yield causes.invalid(path, text, f"compilation failed: {why}")


def _count(configuration: Object) -> Json:
    return len(configuration.get("webhooks") or ())


_COLUMNS = (columns.NAME, Column("Webhooks", _count, type="integer",
                                 description="Webhooks indicates the number of webhooks registered in this "
                                             "configuration"), columns.AGE)

KINDS: tuple[Kind, ...] = (
    row(f"{GROUP}/v1", "mutatingwebhookconfigurations", generation=True, unconditional=False,
        defaults=_mutating_defaults, rules=_rules, columns=_COLUMNS),
    row(f"{GROUP}/v1", "validatingwebhookconfigurations", generation=True, unconditional=False,
        defaults=_defaults, rules=_rules, columns=_COLUMNS),
)
