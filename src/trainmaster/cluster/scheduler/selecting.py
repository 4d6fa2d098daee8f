"""Label selectors and node selector terms: which objects and nodes an affinity, a spread or a queue means.

Read once into plain tuples, because each is asked of every node and pod; the API server's own selectors parse the query
string of a request and answer about stored bytes, which is another question.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.api.meta import Object


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def met(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case "In":
                return found is not None and found in self.values
            case "NotIn":
                return found is None or found not in self.values
            case "Exists":
                return found is not None
            case "DoesNotExist":
                return found is None
            case "Gt" | "Lt":
                return self._compared(found)
        return False

    def _compared(self, found: str | None) -> bool:
        try:
            left, right = int(found or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return left > right if self.operator == "Gt" else left < right


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must be met. A selector without any means everything; None instead of one means nothing."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.met(labels) for requirement in self.requirements)


EVERYTHING = Selector()


def label_selector(spec: Object | None) -> Selector | None:
    """A LabelSelector; None for an absent one."""
    if spec is None:
        return None
    exact = [Requirement(key, "In", (str(value),)) for key, value in sorted((spec.get("matchLabels") or {}).items())]
    return Selector((*exact, *_expressions(spec.get("matchExpressions") or ())))


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: labels, and fields of which there is only the name."""

    labels: Selector
    fields: Selector

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if not self.labels.requirements and not self.fields.requirements:
            return False      # an empty term selects no node
        return self.labels.matches(labels) and self.fields.matches({"metadata.name": name})


def node_term(spec: Object) -> NodeTerm:
    return NodeTerm(Selector(tuple(_expressions(spec.get("matchExpressions") or ()))),
                    Selector(tuple(_expressions(spec.get("matchFields") or ()))))


def _expressions(specs: list[Object] | tuple[()]) -> list[Requirement]:
    return [Requirement(str(each.get("key", "")), str(each.get("operator", "")),
                        tuple(str(value) for value in each.get("values") or ())) for each in specs]
