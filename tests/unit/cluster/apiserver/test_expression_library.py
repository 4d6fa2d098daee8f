"""What Kubernetes adds to CEL, beyond what rule_cases.py holds against a real server: edges and failures."""

import pytest

from trainmaster.cluster.apiserver.expressions import Failed, Unusable, compiled


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("quantity('1Gi') == quantity('1024Mi')", True, id="equal amounts are equal, however written"),
    pytest.param("quantity('1').add(quantity('500m')).asApproximateFloat()", 1.5, id="amounts are added exactly"),
    pytest.param("semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))", True, id="numbers among words"),
    pytest.param("semver('1.0.0-alpha').compareTo(semver('1.0.0-alpha.1'))", -1, id="fewer words come first"),
    pytest.param("semver('1.0.0+a') == semver('1.0.0+b')", True, id="builds do not count"),
    pytest.param("isSemver('01.0.0') || isSemver('1.0')", False, id="no version"),
    pytest.param("isIP('fe80::1%eth0') || isIP('1.2.3') || isIP('01.2.3.4')", False, id="no address"),
    pytest.param("isCIDR('10.0.0.0') || isCIDR('10.0.0.0/08') || isCIDR('10.0.0.0/255.0.0.0')", False, id="no range"),
    pytest.param("ip('::1') == ip('0:0:0:0:0:0:0:1') && !ip.isCanonical('0:0:0:0:0:0:0:1')", True,
                 id="equal addresses are equal, however written"),
    pytest.param("cidr('::/0').containsIP('10.0.0.1')", False, id="an address of the other family is not in it"),
    pytest.param("url('https://u@[::1]:80/').getHost() + ' ' + url('https://[::1]:80/').getHostname()", "[::1]:80 ::1",
                 id="hosts that are addresses"),
    pytest.param("isURL('http://a b/') || isURL('/%zz') || isURL('http://a:b/') || isURL('')", False, id="no URL"),
    pytest.param("'aaa'.findAll('a*?')", ["", "", "", ""], id="nothing is found, everywhere"),
    pytest.param("'abc'.find('(?i)B')", "b", id="flags in a pattern"),
    pytest.param("'abc'.findAll('b', 0)", [], id="none wanted"),
    pytest.param("[1].indexOf(true)", -1, id="a truth is no number"),
    pytest.param("'\\U0001F600b'.indexOf('b')", 1, id="places are counted in signs"),
    pytest.param("string(ip('::0001')) + string(1)", "::11", id="addresses and numbers as text"),
    pytest.param("lists.range(-1)", [], id="a range before zero"),
    pytest.param("'indexOf(' + r'\\a' + \"\"\"validate(\"\"\" // indexOf(", "indexOf(\\avalidate(",
                 id="words in quotes"),
    pytest.param("format.named('date').value().validate('x').value()", ["invalid date"], id="a format by its name"),
])
def test_a_function(text: str, expected: object) -> None:
    assert expected == compiled(text).value({})


@pytest.mark.parametrize(("text", "why"), [
    pytest.param("quantity('x') == quantity('1')", "is not a quantity", id="no amount"),
    pytest.param("quantity('500m').asInteger() == 1", "cannot convert value to integer", id="no whole amount"),
    pytest.param("semver('x') == semver('1.0.0')", "is not a semantic version", id="no version"),
    pytest.param("ip('x').isLoopback()", "'x' does not appear to be an IPv4 or IPv6 address", id="no address"),
    pytest.param("'a'.find('(') == ''", "invalid regular expression", id="no pattern"),
    pytest.param("{'a': 1}.isLessThan(quantity('1'))", "no such overload", id="a map that is no value of ours"),
    pytest.param("lists.range(1000000000).size() == 1", "actual cost limit exceeded", id="a range without end"),
    pytest.param("[].min() == 1", "min called on empty list", id="the least of nothing"),
    pytest.param("authorizer.group('').check('get').allowed()", "nobody is asked here", id="nobody to ask"),
])
def test_a_function_that_fails(text: str, why: str) -> None:
    with pytest.raises(Failed, match=why.replace("(", r"\(")):
        compiled(text, "authorizer").value({"authorizer": {}})


def test_what_is_not_here_is_told_when_it_is_compiled() -> None:
    with pytest.raises(Unusable, match="undeclared reference to 'nosuch'"):
        compiled("nosuch(1)")


def test_a_pattern_cannot_take_long() -> None:
    text = "a" * 30
    assert compiled(f"'{text}'.find('(a*)*b')").value({}) == ""
