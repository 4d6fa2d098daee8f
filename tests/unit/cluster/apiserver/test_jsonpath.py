"""The paths of printer columns."""

import pytest

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver.jsonpath import compiled

THING = {
    "metadata": {"name": "x", "labels": {"app.kubernetes.io/name": "y", "a.b": "z"}},
    "spec": {"list": [1, 2, 3], "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]},
    "status": {"conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "False"}]},
}


@pytest.mark.parametrize(("path", "expected"), [
    (".metadata.name", ["x"]), ("{.metadata.name}", ["x"]), ("metadata.name", ["x"]), ("$.metadata.name", ["x"]),
    (".status.conditions[-1:].type", ["Running"]), (".status.conditions[-1].type", ["Running"]),
    (".status.conditions[0].type", ["Created"]), (".status.conditions[7].type", []),
    (".status.conditions[*].type", ["Created", "Running"]), (".spec.list[1:]", [2, 3]), (".spec.list[:1]", [1]),
    (".status.conditions[?(@.type==\"Running\")].status", ["False"]),
    (".status.conditions[?(@.type=='Created')].status", ["True"]),
    (".status.conditions[?(@.type!='Created')].type", ["Running"]), (".spec.ports[?(@.port==2)].name", ["b"]),
    (".spec.ports[?(@.name)].port", [1, 2]), (".metadata.labels['app.kubernetes.io/name']", ["y"]),
    (".metadata.labels.a\\.b", ["z"]), (".no.such.path", []), (".metadata.name.deeper", []), (".spec.list.x", []),
    (".spec.*", [[1, 2, 3], [{"name": "a", "port": 1}, {"name": "b", "port": 2}]]),
])
def test_paths(path: str, expected: list[Json]) -> None:
    assert expected == compiled(path)(THING)


@pytest.mark.parametrize("path", ["][", ".a[", ".a[?(@.b", ".a b", "..", ".a[x]"])
def test_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(ValueError, match="cannot read the path"):
        compiled(path)
