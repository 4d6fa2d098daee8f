"""What names, labels and keys may look like."""

from collections.abc import Callable

import pytest

from trainmaster.cluster.apiserver import names
from trainmaster.cluster.apiserver.names import Faults

LONG = "a" * 64


@pytest.mark.parametrize(("rule", "good", "bad"), [
    pytest.param(names.label, ["a", "a-b", "1", "a" * 63], ["", "-a", "a-", "A", "a.b", "a_b", "ä", LONG],
                 id="a label"),
    pytest.param(names.subdomain, ["a", "a.b-c.1", "a" * 253], ["", ".a", "a.", "a..b", "A", "a/b", "a" * 254, "a\n"],
                 id="a subdomain"),
    pytest.param(names.label_1035, ["a", "a1-b"], ["1a", "", "a-", "A", LONG], id="a name that starts with a letter"),
    pytest.param(names.path_segment, ["a", "A:b c", "...", "a" * 254], [".", "..", "a/b", "a%b"], id="part of a path"),
    pytest.param(names.label_value, ["", "a", "A.b_c-1"], ["-a", "a-", "a b", "a/b", LONG], id="the value of a label"),
    pytest.param(names.qualified, ["a", "A.b", "example.com/a", "a" * 63],
                 ["", "/a", "a/", "a/b/c", "A.com/a", "-a", f"{'a' * 254}/a", LONG], id="a qualified name"),
    pytest.param(names.data_key, ["a", ".a", "A_b.c-d", "1"], ["", ".", "..", "..a", "a/b", "a b", "a" * 254],
                 id="a key that becomes a file"),
    pytest.param(names.env_name, ["A", "a.b-c", "1 x"], ["", "a=b", "ä", "a\n"], id="an environment variable"),
    pytest.param(names.port_name, ["web", "a-1"], ["", "80", "a--b", "-a", "a-", "A", "a" * 16],
                 id="the name of a port"),
])
def test_rules(rule: Callable[[str], Faults], good: list[str], bad: list[str]) -> None:
    assert [] == [text for text in good if rule(text)]
    assert [] == [text for text in bad if not rule(text)]


def test_a_refusal_says_the_rule_the_examples_and_the_pattern() -> None:
    said = ("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")

    assert [said] == names.subdomain("A")


def test_a_very_long_name_is_refused_quickly() -> None:
    assert names.subdomain("a." * 500_000)


def test_annotations_are_limited_in_all() -> None:
    found = [str(cause) for cause in names.annotations({"a": "x" * (256 * 1024)}, "metadata.annotations")]

    assert ["metadata.annotations: Too long: may not be more than 262144 bytes"] == found
