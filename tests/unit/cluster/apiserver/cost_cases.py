"""Rules in CEL with what they may cost, in the units of Kubernetes: (where the rule stands, the rule, its cost).

The figures are those of a real kube-apiserver, which says by how much a rule exceeds the budget; `SCHEMA` is what the
rules are about. Unit tests hold the estimate to them, `test-kubernetes` the table to a real server.
"""

import copy
import math

from tests.unit.cluster.apiserver.rule_cases import FIELDS, NAME, Case

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.expression_prices import MOST
from trainmaster.cluster.apiserver.rule_costs import ONE_RULE

_TAGS = {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 8}}
_NAMED = {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string", "maxLength": 10}, "n": {"type": "integer"}, "tags": _TAGS}}
SCHEMA: Object = {"type": "object", "required": ["name"], "properties": {
    **FIELDS, "free": {"type": "string"}, "frees": {"type": "array", "items": {"type": "string"}},
    "word": {"type": "string", "enum": ["abc", "defgh"]}, "data": {"type": "string", "format": "byte", "maxLength": 30},
    "objs": {"type": "array", "items": _NAMED}, "nums": {"type": "array", "maxItems": 20, "items": {"type": "integer"}},
    "maps": {"type": "object", "additionalProperties": {"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 5}}}},
    "flag": {"type": "boolean"}, "nest": {"type": "array", "maxItems": 7, "items": {
        "type": "array", "maxItems": 6, "items": {"type": "string", "maxLength": 9}}}}}
HERE = "."      # on the object itself; else on the field of that name

COSTS = (
    (HERE, "self.replicas > 0", 3),
    (HERE, "self.min <= self.max && self.min > 0", 8),
    (HERE, "self.name == 'a'", 3),
    (HERE, "self.name == self.free", 24),
    (HERE, "self.free.startsWith('abcdefghijkl')", 4),
    (HERE, "self.free.contains('abcdefghijkl')", 629_148),
    (HERE, "self.free.matches('^[a-z]+$')", 629_148),
    (HERE, "self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", 149),
    (HERE, "self.list.all(x, x.size() > 1)", 63),
    (HERE, "self.list.all(x, x == 'a')", 53),
    (HERE, "self.frees.all(x, x == 'a')", 5_242_878),
    (HERE, "self.list.exists(x, self.list.exists(y, x == y))", 1_473),
    (HERE, "self.ports.all(p, p.port > 0 && p.name != '')", 83),
    (HERE, "self.ports.exists_one(p, p.name == 'a')", 54),
    (HERE, "self.ports.all(p, self.ports.exists_one(q, q.name == p.name))", 1_473),
    (HERE, "self.objs.all(p, p.name != '')", 1_209_893),
    (HERE, "self.objs.all(p, p.tags.all(t, t.startsWith('a')))", 7_501_321),
    (HERE, "has(self.name) && self.name != ''", 3),
    (HERE, "!has(self.min) || self.min > 0", 5),
    (HERE, "has(self.objs) ? self.objs.size() > 1 : true", 5),
    (HERE, "self.map.all(k, k.startsWith('a'))", 53),
    (HERE, "self.map.all(k, self.map[k] == 'a')", 83),
    (HERE, "self.map['a'] == 'b'", 4),
    (HERE, "'a' in self.map", 3),
    (HERE, "'a' in self.list", 12),
    (HERE, "self.frees.exists(x, x in self.list)", 17_825_778),
    (HERE, "self.word in ['abc', 'defgh']", 14),
    (HERE, "self.word == 'abc'", 3),
    (HERE, "self.list.map(x, x + 'a').size() > 1", 235),
    (HERE, "self.list.filter(x, x != 'a').size() > 1", 165),
    (HERE, "self.list.filter(x, x != 'a').all(x, x == 'b')", 204),
    (HERE, "self.list.map(x, x + 'a').all(y, y == 'b')", 274),
    (HERE, "[1, 2, 3].all(x, x > 1)", 26),
    (HERE, "['a', 'b'].all(x, x == self.name)", 23),
    (HERE, "['a', 'b'].exists(x, x == 'a')", 21),
    (HERE, "{'a': 1, 'b': 2}['a'] == 1", 32),
    (HERE, "{'a': 'x'}.all(k, k == 'a')", 35),
    (HERE, "self.list.isSorted()", 92),
    (HERE, "self.frees.isSorted()", 329_854_432_052),
    (HERE, "self.nums.sum() == 10", 23),
    (HERE, "self.nums.max() > self.nums.min()", 45),
    (HERE, "self.list.indexOf('a') == 1", 93),
    (HERE, "self.free.indexOf('a') == 1", 314_576),
    (HERE, "self.free.lowerAscii() == 'a'", 314_576),
    (HERE, "self.free.replace('a', 'bbb') == 'a'", 629_149),
    (HERE, "self.name.replace('a', 'bbb').size() == 3", 44),
    (HERE, "self.name.replace('', 'bbb') == 'x'", 43),
    (HERE, "self.name.split(',').size() == 1", 44),
    (HERE, "self.name.split(',').all(x, x != '')", 843),
    (HERE, "self.name.split(',', 3).all(x, x != '')", 55),
    (HERE, "self.list.join(',') == 'a'", 84),
    (HERE, "self.list.join() == 'a'", 83),
    (HERE, "self.free.find('a+') == 'a'", 314_576),
    (HERE, "self.free.findAll('a+').size() == 1", 314_577),
    (HERE, "self.name.trim().substring(1) == 'a'", 43),
    (HERE, "'%s'.format([self.name]).size() == 1", 15),
    (HERE, "strings.quote(self.name) == 'a'", 23),
    (HERE, "string(self.replicas).size() == 1", 5),
    (HERE, "self.name + self.free == 'abc'", 314_598),
    (HERE, "self.name + 'abc' == self.free", 46),
    (HERE, "size(self.frees) > 1", 4),
    (HERE, "self.frees[0] == 'abc'", 4),
    (HERE, "self.objs[0].name == 'abc'", 5),
    (HERE, "self.objs[0].tags[0] == 'abc'", 6),
    (HERE, "self.?name.orValue('a') == 'b'", 4),
    (HERE, "self.?name.hasValue()", 3),
    (HERE, "self.objs[?0].hasValue()", 4),
    (HERE, "self.?objs.orValue([]).size() == 0", 15),
    (HERE, "self.maps.all(k, self.maps[k].a == 'b')", 3_538_938),
    (HERE, "self.maps.exists(k, k == 'a')", 1_966_078),
    (HERE, "self.maps.size() < 5", 4),
    (HERE, "self.list.all(i, v, v == 'a' && i < 5)", 73),
    (HERE, "self.map.all(k, v, v == k)", 53),
    (HERE, "self.map.transformList(k, v, v + k).size() == 1", 235),
    (HERE, "self.list == ['a']", 13),
    (HERE, "self.frees == self.list", 5),
    (HERE, "self.ports == self.ports", 5),
    (HERE, "self.map == self.map", 5),
    (HERE, "self.when > timestamp('2020-01-01T00:00:00Z')", 4),
    (HERE, "self.wait < duration('1h')", 4),
    (HERE, "self.wait == self.wait", 8),
    (HERE, "self.share * 2.0 > 1.0", 4),
    (HERE, "type(self.size) == string ? self.size == 'abc' : self.size == 5", 7),
    (HERE, "self.size == 5", 3),
    (HERE, "dyn(self.name) == 'abc'", 4),
    (HERE, "quantity(self.free).isLessThan(quantity('1Gi'))", 314_577),
    (HERE, "isQuantity(self.name) && quantity(self.name) == quantity('1')", 46),
    (HERE, "ip(self.name).family() == 4", 24),
    (HERE, "isIP(self.free)", 314_575),
    (HERE, "cidr(self.name).containsIP(self.name)", 48),
    (HERE, "cidr(self.name).containsCIDR(self.name)", 51),
    (HERE, "cidr(self.name).containsIP(ip(self.name))", 48),
    (HERE, "url(self.free).getHost() == 'a'", 314_577),
    (HERE, "url(self.name) == url(self.free)", 629_170),
    (HERE, "isURL(self.free)", 3),
    (HERE, "semver(self.name) == semver('1.0.0')", 24),
    (HERE, "ip(self.name) == ip('1.2.3.4')", 24),
    (HERE, "string(ip(self.name)) == 'abcdef'", 24),
    (HERE, "!format.dns1123Label().validate(self.name).hasValue()", 645),
    (HERE, "format.named('uri').value().validate(self.free).orValue([]).size() == 0", 10_066_353),
    (HERE, "format.labelValue() == format.dns1035Label()", 9),
    (HERE, "sets.contains(self.list, ['a', 'b'])", 33),
    (HERE, "sets.equivalent(self.list, self.frees)", 20_971_505),
    (HERE, "sets.intersects(self.nums, [1])", 33),
    (HERE, "self.list.distinct().size() == 1", 215),
    (HERE, "self.nums.sort() == [1, 2]", 824),
    (HERE, "self.list.sort()[0] == 'a'", 224),
    (HERE, "self.ports.sortBy(p, p.name)[0].name == 'a'", 389),
    (HERE, "self.ports.sortBy(p, p.port)[0].name == 'a'", 379),
    (HERE, "self.list.reverse()[0] == 'a'", 24),
    (HERE, "self.list.slice(0, 2).size() == 2", 17),
    (HERE, "self.list.slice(1, self.replicas).size() == 2", 26),
    (HERE, "[[1], [2]].flatten() == [1, 2]", 54),
    (HERE, "self.nest.flatten().size() == 2", 22),
    (HERE, "lists.range(5).all(x, x < 5)", 42),
    (HERE, "lists.range(100).map(x, x * 2).size() == 100", 1_524),
    (HERE, "self.nums.filter(x, x > 1).map(x, x * 2).sum() > 1", 625),
    (HERE, "self.list.first().value() == 'a'", 5),
    (HERE, "self.flag ? self.name == 'a' : self.free == 'abcdefghij'", 5),
    (HERE, "self.flag == true && self.data == b'abc'", 5),
    (HERE, "string(self.data) == 'abc' && bytes(self.name) == b'a'", 29),
    (HERE, "self.nest.all(x, x.all(y, y != 'a'))", 248),
    (HERE, "self.objs.map(o, o.name).all(n, n != 'a')", 4_355_618),
    (HERE, "self.objs.filter(o, o.n > 1).map(o, o.name).exists(n, n == self.name)", 8_953_211),
    (HERE, "self.ports.map(p, p.name).indexOf('a') == 0", MOST),
    (HERE, "self.list.all(x, self.map.exists(k, k == x))", 663),
    (HERE, "self.name.charAt(0) == 'a'", 4),
    (HERE, "timestamp(self.free) < self.when", 6),
    (HERE, "duration(self.name) < self.wait", 6),
    (HERE, "int(self.name) > 1", 4),
    (HERE, "self.replicas in [1, 2, 3]", 15),
    (HERE, "self.list.size() == 0 || self.list.all(x, x.matches('^a+$'))", 137),
    (HERE, "(self.flag ? self.list : self.frees).all(x, x == 'a')", 4_194_305),
    (HERE, "(self.list + self.frees).all(x, x == 'abcdefghijklmnop')", 4_194_346),
    (HERE, "self.?list[?0].optMap(y, y == 'a').orValue(false)", 22),
    (HERE, "self.list.exists(x, x.startsWith(self.name))", 273),
    (HERE, "self.name.size() < 10 && self.free.size() > 1", 8),
    (HERE, "self == self", 2),
    ("name", "self.startsWith('a')", 2),
    ("list", "self.all(x, x == 'a')", 52),
    ("frees", "self.all(x, self.exists(y, y == x))", 345_882_608_639_724_752),
    ("ports", "self.all(p, p.port > 1)", 62),
    ("objs", "self.all(o, o.n > 1)", 1_451_870),
    ("map", "self.all(k, self[k] != '')", 62),
    ("maps", "self.all(k, self[k].a != '')", 2_752_507),
    ("when", "self > timestamp('2020-01-01T00:00:00Z')", 3),
    ("size", "type(self) == string", 314_576),
    ("nums", "self.isSorted()", 21),
    ("list", "['a','bb'].all(x, x in self)", 41),
    ("name", "['a','bb'].all(x, x == 'abcdefghijklmnop')", 23),
)


def often(cost: int) -> int:
    """How often a rule must be asked to cost a little too much."""
    return max(1, math.ceil(1.2 * ONE_RULE / max(1, cost)))


def definition(where: str, rule: str, most: int | None) -> Object:
    """With the rule on the items of a list."""
    items = copy.deepcopy(SCHEMA)
    (items if where == HERE else items["properties"][where])["x-kubernetes-validations"] = [{"rule": rule}]
    found = Case("", "spec", [], {}).definition()
    whole = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    whole["properties"]["spec"] = {"type": "object", "properties": {
        "wrap": {"type": "array", "items": items, **({} if most is None else {"maxItems": most})}}}
    return found


def refusal(where: str, cost: int, most: int) -> str:
    """The whole answer to a rule that is asked so often."""
    place = "spec.validation.openAPIV3Schema"
    rule = f"{place}.properties[spec].properties[wrap].items{'' if where == HERE else f'.properties[{where}]'}"
    rule += ".x-kubernetes-validations[0].rule"
    advice = ("(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and "
              "strings are declared)")
    total = min(cost * most, MOST)
    said = [f"{rule}: Forbidden: estimated rule cost exceeds budget by factor of {_factor(total / ONE_RULE)} {advice}"]
    if total > 10 * ONE_RULE:
        schema, by = "entire OpenAPIv3 schema", _factor(total / ONE_RULE / 10)
        said.append(f"{rule}: Forbidden: contributed to estimated rule cost total exceeding cost limit for {schema}")
        said.append(f"{place}: Forbidden: x-kubernetes-validations estimated rule cost total for {schema} exceeds "
                    f"budget by factor of {by} {advice}")
    listed = ", ".join(said)
    return (f'CustomResourceDefinition.apiextensions.k8s.io "{NAME}" is invalid: '
            f"{listed if len(said) == 1 else f'[{listed}]'}")


def _factor(factor: float) -> str:
    return "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
