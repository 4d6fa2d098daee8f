"""Rules in CEL in the schema of a custom resource, and what a server says of objects that break them.

The answers are those of a real kube-apiserver; `ours` where the embedded server differs, on purpose and as documented.
Unit tests hold the embedded server to them, `test-kubernetes` the table to a real one.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.api.meta import Object

GROUP, NAME = "cel.example.com", "rules.cel.example.com"
_NUMBER = {"type": "integer"}
_WORD = {"type": "string", "maxLength": 20}
_PORT = {"type": "object", "required": ["name"], "properties": {"name": _WORD, "port": _NUMBER}}
_SPEC: Object = {"type": "object", "properties": {
    "replicas": _NUMBER, "min": _NUMBER, "max": _NUMBER, "name": {"type": "string", "maxLength": 50},
    "when": {"type": "string", "format": "date-time"}, "wait": {"type": "string", "format": "duration"},
    "share": {"type": "number"}, "list": {"type": "array", "maxItems": 10, "items": _WORD},
    "ports": {"type": "array", "maxItems": 10, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
              "items": _PORT},
    "map": {"type": "object", "maxProperties": 10, "additionalProperties": _WORD},
    "x-dash": {"type": "string"}, "namespace": {"type": "string"}, "size": {"x-kubernetes-int-or-string": True},
}}


@dataclass(frozen=True, slots=True)
class Case:
    when: str
    at: str                          # where the rules stand: root, spec, items, or a field of the spec
    rules: Sequence[Object]
    first: Object                    # the spec of an object
    second: Object | None = None     # what it is changed to
    said: str = ""                   # after `is invalid: `, of the last of the two
    ours: str | None = None

    def definition(self) -> Object:
        spec: dict[str, Any] = copy.deepcopy(_SPEC)
        fields = spec["properties"]
        root = {"type": "object", "properties": {"spec": spec}}
        place = {"root": root, "spec": spec, "items": fields["ports"]["items"], **fields}[self.at]
        place["x-kubernetes-validations"] = list(self.rules)
        names = {"plural": "rules", "singular": "rule", "kind": "Rule", "listKind": "RuleList"}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME},
                "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}}

    def made(self) -> Object:
        return {"apiVersion": f"{GROUP}/v1", "kind": "Rule", "metadata": {"name": "r"}, "spec": self.first}

    def change(self) -> Object:
        """A merge patch."""
        return {"spec": {**dict.fromkeys(self.first), **(self.second or {})}}


CASES = (
    Case("a rule that holds", "spec",
         [{"rule": "self.min <= self.max"}],
         {"min": 1, "max": 2},
         said=""),
    Case("a rule that does not hold, with a message", "spec",
         [{"rule": "self.min <= self.max", "message": "min must not be above max"}],
         {"min": 3, "max": 2},
         said="spec: Invalid value: min must not be above max"),
    Case("a rule without a message", "spec",
         [{"rule": "self.min <= self.max"}],
         {"min": 3, "max": 2},
         said="spec: Invalid value: failed rule: self.min <= self.max"),
    Case("a field that is not there", "spec",
         [{"rule": "self.min <= self.max", "message": "needs both"}],
         {"min": 3},
         said="spec: Invalid value: \"object\": no such key: max evaluating rule: needs both"),
    Case("a field that may not be there", "spec",
         [{"rule": "!has(self.min) || self.min > 0"}],
         {"max": 1},
         said=""),
    Case("another reason, and another place", "spec",
         [{"rule": "self.replicas < 5", "message": "too many", "reason": "FieldValueForbidden",
           "fieldPath": ".replicas"}],
         {"replicas": 7},
         said="spec.replicas: Forbidden: too many"),
    Case("a rule on a number", "replicas",
         [{"rule": "self % 2 == 0", "message": "must be even"}],
         {"replicas": 3},
         said="spec.replicas: Invalid value: 3: must be even"),
    Case("a rule on text", "name",
         [{"rule": "self.startsWith('x') && self.size() < 5"}],
         {"name": "abc"},
         said="spec.name: Invalid value: \"abc\": failed rule: self.startsWith('x') && self.size() < 5"),
    Case("a rule on a list", "list",
         [{"rule": "self.all(e, e.size() > 1)", "message": "too short"},
          {"rule": "self.isSorted()", "message": "not sorted"}],
         {"list": ["bb", "a"]},
         said="[spec.list: Invalid value: too short, spec.list: Invalid value: not sorted]"),
    Case("a rule on the items of a list", "items",
         [{"rule": "self.port > 1000", "message": "reserved"}],
         {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 8080}]},
         said="spec.ports[0]: Invalid value: reserved"),
    Case("a rule on a map", "map",
         [{"rule": "self.all(k, k != 'no')", "message": "not that"}],
         {"map": {"no": "x"}},
         said="spec.map: Invalid value: not that"),
    Case("a rule on the whole", "root",
         [{"rule": "self.metadata.name.startsWith('r')", "message": "name"},
          {"rule": "self.spec.replicas > 0", "message": "some"}],
         {"replicas": 0},
         said="<nil>: Invalid value: some"),
    Case("a moment", "spec",
         [{"rule": "self.when < timestamp('2024-01-01T00:00:00Z')", "message": "too late"}],
         {"when": "2025-01-01T00:00:00Z"},
         said="spec: Invalid value: too late"),
    Case("a duration", "spec",
         [{"rule": "self.wait < duration('1h')", "message": "too long"}],
         {"wait": "2h"},
         said="spec: Invalid value: too long"),
    Case("a number that is whole", "spec",
         [{"rule": "self.share * 2.0 < 1.0", "message": "too much"}],
         {"share": 1},
         said="spec: Invalid value: too much"),
    Case("a name with a dash", "spec",
         [{"rule": "self.x__dash__dash == 'a'", "message": "dash"}],
         {"x-dash": "b"},
         said="spec: Invalid value: dash"),
    Case("a name that is a word of the language", "spec",
         [{"rule": "self.__namespace__ == 'a'", "message": "word"}],
         {"namespace": "b"},
         said="spec: Invalid value: word"),
    Case("a number or text", "spec",
         [{"rule": "type(self.size) == string ? self.size == '5%' : self.size == 5", "message": "five"}],
         {"size": 6},
         said="spec: Invalid value: five"),
    Case("a transition that is none", "spec",
         [{"rule": "self.replicas >= oldSelf.replicas", "message": "may not shrink"}],
         {"replicas": 1},
         said=""),
    Case("a transition that is not allowed", "spec",
         [{"rule": "self.replicas >= oldSelf.replicas", "message": "may not shrink"}],
         {"replicas": 3}, {"replicas": 1},
         said="spec: Invalid value: may not shrink"),
    Case("a transition that is allowed", "spec",
         [{"rule": "self.replicas >= oldSelf.replicas", "message": "may not shrink"}],
         {"replicas": 3}, {"replicas": 4},
         said=""),
    Case("a transition of a field that appears", "name",
         [{"rule": "self == oldSelf + 'x'", "message": "grow"}],
         {"replicas": 1}, {"name": "a"},
         said=""),
    Case("a transition of an item with a key", "items",
         [{"rule": "self.port >= oldSelf.port", "message": "down"}],
         {"ports": [{"name": "a", "port": 5}]}, {"ports": [{"name": "b", "port": 1}, {"name": "a", "port": 4}]},
         said="spec.ports[1]: Invalid value: down"),
    Case("several rules that do not hold", "spec",
         [{"rule": "self.min > 5", "message": "one"}, {"rule": "self.max > 5", "message": "two"}],
         {"min": 1, "max": 1},
         said="[spec: Invalid value: one, spec: Invalid value: two]"),
    Case("division by zero", "spec",
         [{"rule": "10 / self.replicas > 1", "message": "ten"}],
         {"replicas": 0},
         said="spec: Invalid value: \"object\": division by zero evaluating rule: ten"),
    Case("text by a pattern", "name",
         [{"rule": "self.matches('^[a-z]+$')", "message": "pattern"}],
         {"name": "a1"},
         said="spec.name: Invalid value: \"a1\": pattern"),
    Case("an option", "spec",
         [{"rule": "self.?min.orValue(7) < 5", "message": "seven"}],
         {"max": 1},
         said="spec: Invalid value: seven"),
    Case("a wrong type beside a rule", "spec",
         [{"rule": "self.min <= self.max", "message": "min"}],
         {"min": "x", "max": 1},
         said="[spec.min: Invalid value: \"string\": spec.min in body must be of type integer: \"string\", "
              "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
              "correct the existing errors to complete validation]"),
    Case("an amount that is too large", "name",
         [{"rule": "quantity(self).isLessThan(quantity('1Gi'))", "message": "less"},
          {"rule": "quantity(self) == quantity('2048Mi') && quantity(self).compareTo(quantity('2Gi')) == 0"},
          {"rule": "quantity(self).sub(quantity('1Gi')).add(1).asInteger() == 1073741825"},
          {"rule": "sign(quantity(self)) == 1 && quantity('50m').isInteger() == false"}],
         {"name": "2Gi"},
         said="spec.name: Invalid value: \"2Gi\": less"),
    Case("text that is no amount", "name",
         [{"rule": "isQuantity(self)", "message": "amount"}],
         {"name": "2x"},
         said="spec.name: Invalid value: \"2x\": amount"),
    Case("versions in order", "name",
         [{"rule": "semver(self).isGreaterThan(semver('1.2.3-rc.1')) && isSemver(self) && !isSemver('v1.0')"},
          {"rule": "semver('v1.0', true) == semver('1.0.0') && semver(self).minor() == 2"},
          {"rule": "semver(self).isLessThan(semver('1.2.3-rc.10'))", "message": "before"}],
         {"name": "1.2.3"},
         said="spec.name: Invalid value: \"1.2.3\": before"),
    Case("addresses", "name",
         [{"rule": "isIP(self) && ip(self).family() == 4 && ip(self).isGlobalUnicast() && ip.isCanonical(self)"},
          {"rule": "cidr('10.0.0.0/8').containsIP(self) && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')"},
          {"rule": "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.0/8').prefixLength() == 8"},
          {"rule": "!isIP('::ffff:1.2.3.4') && !isCIDR('10.0.0.0/33') && ip('ff02::1').isLinkLocalMulticast()"},
          {"rule": "cidr('10.0.0.0/24').containsIP(ip(self))", "message": "outside"}],
         {"name": "10.1.2.3"},
         said="spec.name: Invalid value: \"10.1.2.3\": outside"),
    Case("a URL", "name",
         [{"rule": "isURL(self) && url(self).getScheme() == 'https' && url(self).getHost() == 'a.example:80'"},
          {"rule": "url(self).getHostname() == 'a.example' && url(self).getPort() == '80'"},
          {"rule": "url(self).getEscapedPath() == '/b%20c' && url(self).getQuery()['k'] == ['v', 'w']"},
          {"rule": "!isURL('a.example') && !isURL('../b') && isURL('/b') && isURL('mailto:a@b')"},
          {"rule": "url(self).getScheme() == 'http'", "message": "scheme"}],
         {"name": "https://a.example:80/b%20c?k=v&k=w"},
         said="spec.name: Invalid value: \"https://a.example:80/b%20c?k=v&k=w\": scheme"),
    Case("finds in text", "name",
         [{"rule": "self.find('[0-9]+') == '12' && self.findAll('[0-9]+') == ['12', '34']"},
          {"rule": "self.findAll('([a-z])[0-9]', 1) == ['a1'] && self.find('x') == ''"},
          {"rule": "self.findAll('[0-9]+').size() == 3", "message": "three"}],
         {"name": "a12b34"},
         said="spec.name: Invalid value: \"a12b34\": three"),
    Case("sets and lists", "list",
         [{"rule": "sets.contains(self, ['a']) && sets.intersects(self, ['b']) && !sets.equivalent(self, ['a'])"},
          {"rule": "self.all(i, e, i < 2 && e != 'x') && [1, 2].sum() == 3 && [1, 2].max() == 2"},
          {"rule": "self.exists(i, e, e == 'z')", "message": "z"}],
         {"list": ["a", "b"]},
         said="spec.list: Invalid value: z"),
    Case("a new value that a rule wants to see", "spec",
         [{"rule": "!oldSelf.hasValue() || self.replicas >= oldSelf.value().replicas", "optionalOldSelf": True},
          {"rule": "oldSelf.hasValue() || self.replicas == 1", "optionalOldSelf": True, "message": "begin with one"}],
         {"replicas": 2},
         said="spec: Invalid value: begin with one"),
    Case("a change that a rule wants to see", "spec",
         [{"rule": "self.replicas >= oldSelf.?replicas.orValue(0)", "optionalOldSelf": True, "message": "shrinks"}],
         {"replicas": 2}, {"replicas": 1},
         said="spec: Invalid value: shrinks"),
    Case("a moment that moves", "spec",
         [{"rule": "self.when >= oldSelf.when && self.wait.getMinutes() == 90", "message": "back"}],
         {"when": "2025-01-01T00:00:00Z", "wait": "1h30m"}, {"when": "2024-01-01T00:00:00+02:00", "wait": "1h30m"},
         said="spec: Invalid value: back"),
)

# What a server says when a definition with one such rule is written: where (as in `Case`), the rule, and why
# it is refused, after its column; nothing for rules that are taken.
WRITTEN = (
    ("a field that is not there", "spec", "self.nosuch > 1",
     "5: undefined field 'nosuch'"),
    ("a field of a part that is not there", "ports", "self.all(p, p.nosuch == 1)",
     "14: undefined field 'nosuch'"),
    ("whether a field is there that never is", "spec", "has(self.nosuch)",
     "4: undefined field 'nosuch'"),
    ("a text against a number", "spec", "self.name > 1",
     "11: found no matching overload for '_>_' applied to '(string, int)'"),
    ("a number against a text", "spec", "self.replicas == 'a'",
     "15: found no matching overload for '_==_' applied to '(int, string)'"),
    ("a list against a number", "spec", "self.list == self.replicas",
     "11: found no matching overload for '_==_' applied to '(list(string), int)'"),
    ("an item against a number", "spec", "self.list.all(x, x > 1)",
     "20: found no matching overload for '_>_' applied to '(string, int)'"),
    ("a value of a map against a number", "spec", "self.map.all(k, self.map[k] == 1)",
     "29: found no matching overload for '_==_' applied to '(string, int)'"),
    ("a sum of a number and a share", "spec", "self.replicas + self.share > 1.0",
     "15: found no matching overload for '_+_' applied to '(int, double)'"),
    ("a moment against a text", "spec", "self.when == '2020'",
     "11: found no matching overload for '_==_' applied to '(timestamp, string)'"),
    ("a wait against a number", "spec", "self.wait == 1",
     "11: found no matching overload for '_==_' applied to '(duration, int)'"),
    ("a text that is nothing", "spec", "self.name == null",
     "11: found no matching overload for '_==_' applied to '(string, null)'"),
    ("no truth", "spec", "self.replicas",
     "cel expression must evaluate to a bool"),
    ("no truth but a text", "spec", "self.name + 'a'",
     "cel expression must evaluate to a bool"),
    ("a function that nobody has", "spec", "self.name.nosuch()",
     "17: undeclared reference to 'nosuch' (in container '')"),
    ("not of a number", "spec", "!self.replicas",
     "1: found no matching overload for '!_' applied to '(int)'"),
    ("labels of the whole object", "root", "self.metadata.labels.a == 'a'",
     "14: undefined field 'labels'"),
    ("a status that is not in the schema", "root", "self.status.x == 1",
     "5: undefined field 'status'"),
    ("a field below one that is not there", "spec", "self.a.b.c == 1",
     "5: undefined field 'a'"),
    ("a number itself", "replicas", "self > 'a'",
     "6: found no matching overload for '_>_' applied to '(int, string)'"),
    ("an index that is a text", "spec", "self.list['a'] == 'b'",
     "10: found no matching overload for '_[_]' applied to '(list(string), string)'"),
    ("numbers of two sorts are compared", "spec", "self.share > 1 && self.replicas < 2.5",
     ""),
    ("a number or text is anything", "spec", "self.size == 1 || self.size == 'a'",
     ""),
    ("names of the whole object", "root",
     "self.metadata.name == 'a' && self.kind == 'Rule' && self.metadata.generateName == ''",
     ""),
    ("a field with a dash", "spec", "self.x__dash__x == 'a' || self.x__dash__dash == 'b'",
     "5: undefined field 'x__dash__x'"),
    ("a field called like a word", "spec", "self.__namespace__ == 'a'",
     ""),
    ("optional fields", "spec", "self.?name.orValue('a') == 'b'",
     ""),
    ("an optional field that is not there", "spec", "self.?nosuch.orValue('a') == 'b'",
     "5: undefined field 'nosuch'"),
    ("moments", "spec", "self.when > timestamp('2020-01-01T00:00:00Z') && self.wait < duration('1h')",
     ""),
    ("anything", "spec", "dyn(self.name) > 1",
     ""),
)


def refusal(rule: str, said: str) -> str:
    """As it stands in the message, after the rule."""
    column, _, why = said.partition(": ")
    if not column.isdigit():
        return said
    return f"compilation failed: ERROR: <input>:1:{column}: {why}\n | {rule}\n | {'.' * (int(column) - 1)}^"
