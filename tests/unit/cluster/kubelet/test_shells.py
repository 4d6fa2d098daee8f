"""Which shell containers find at /bin/sh."""

import pytest

from trainmaster.cluster.kubelet.rootfs import Shell
from trainmaster.cluster.kubelet.shells import stand_in

MERGED = {"/bin": "/usr/bin", "/bin/sh": "/usr/bin/bash"}


@pytest.mark.parametrize(("expected", "links", "there"), [
    pytest.param(None, {"/bin/sh": "/usr/bin/dash"}, {"/usr/bin/dash"}, id="Debian: dash is it already"),
    pytest.param(None, {"/bin/sh": "/bin/busybox"}, set(), id="Alpine: so is BusyBox"),
    pytest.param({"at": "usr/bin/sh", "link": "/usr/bin/dash", "script": ""}, MERGED, {"/usr/bin/dash"},
                 id="Fedora with dash: that"),
    pytest.param({"at": "usr/bin/sh", "link": "",
                  "script": '#!/usr/bin/bash\nexec -a "$0" /usr/bin/bash +B "$@"\n'}, MERGED, set(),
                 id="without: bash that leaves braces alone"),
    pytest.param({"at": "bin/sh", "link": "", "script": '#!/bin/bash\nexec -a "$0" /bin/bash +B "$@"\n'},
                 {"/bin/sh": "/bin/bash"}, set(), id="an old layout"),
])
def test_what_stands_in(expected: Shell | None, links: dict[str, str], there: set[str]) -> None:
    assert expected == stand_in(lambda path: links.get(path, path), there.__contains__)
