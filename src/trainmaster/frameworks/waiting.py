"""The init container in which workers wait until a name can be resolved, and the operator's template for another one.

An image and a cluster's DNS are needed for it (B-56); sites without them give a template of their own, an empty list
included.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import yaml

from trainmaster.api.meta import Json, Object
from trainmaster.frameworks.framework import ANYWHERE, Site

_PLACEHOLDER = re.compile(r"{{\s*\.(InitContainerImage|MasterAddr|MaxTries)\s*}}")


def for_host(host: str, site: Site) -> Sequence[Object]:
    return _containers(site.init_template, site.init_image, host, site.init_tries)


def template_problem(template: str) -> str:
    """What is wrong with a template; empty if nothing is. For whoever reads it, once."""
    try:
        made = yaml.safe_load(_filled_in(template, ANYWHERE.init_image, "master", ANYWHERE.init_tries))
    except yaml.YAMLError as problem:
        return f"it is not YAML: {problem}"
    fine = isinstance(made, list) and all(isinstance(found, dict) and found.get("name") for found in made)
    return "" if fine else "it must be a list of containers, each with a name"


@lru_cache(maxsize=256)
def _containers(template: str, image: str, host: str, tries: int) -> Sequence[Object]:
    """One for all workers of a job. A template that makes no sense is told of at the start, and not used."""
    if template and not template_problem(template):
        made: Json = yaml.safe_load(_filled_in(template, image, host, tries))
        return tuple(made)
    look = (f"err=1;for i in $(seq {tries}); do if nslookup {host}; then err=0 && break; fi;"
            "echo waiting for master; sleep 2; done; exit $err")
    return ({
        "name": "init-pytorch",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": {"cpu": "100m", "memory": "20Mi"}, "requests": {"cpu": "50m", "memory": "10Mi"}},
        "command": ["sh", "-c", look],
    },)


def _filled_in(template: str, image: str, host: str, tries: int) -> str:
    """As plain text: upstream escapes it as if it were HTML (B-57)."""
    values = {"InitContainerImage": image, "MasterAddr": host, "MaxTries": str(tries)}
    return _PLACEHOLDER.sub(lambda found: values[found.group(1)], template)
