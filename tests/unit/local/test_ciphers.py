"""Whose word counts about the ciphers of the control plane, and that ours does what it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.local import ciphers

EMPTY = "openssl_conf = openssl_init\n[openssl_init]\n# ssl_conf = ssl_sect\n"


@pytest.mark.parametrize(("said", "ours"), [
    pytest.param("", True, id="an empty configuration"),
    pytest.param(EMPTY, True, id="sections without a word about TLS"),
    pytest.param(EMPTY + "ssl_conf = ssl_sect\n", False, id="a section about TLS"),
    pytest.param(EMPTY + "  providers = provider_sect\n", False, id="providers"),
    pytest.param(EMPTY + ".include /etc/ssl/more.cnf\n", False, id="another file"),
])
def test_a_machine_that_says_something_about_tls_is_obeyed(tmp_path: Path, said: str, ours: bool) -> None:
    theirs = tmp_path / "openssl.cnf"
    theirs.write_text(said)

    assert bool(ciphers.environment({}, [tmp_path / "not-there.cnf", theirs])) is ours


def test_a_person_who_says_something_is_obeyed() -> None:
    assert ciphers.environment({"OPENSSL_CONF": "/home/me/openssl.cnf"}, []) == {}


def test_what_cannot_be_read_may_say_something(tmp_path: Path) -> None:
    assert ciphers.environment({}, [tmp_path]) == {}, "a folder is there in place of the file"


def test_ours_brings_the_cheapest_cipher_forward_and_leaves_none_out() -> None:
    show = "import ssl; print(*(each['name'] for each in ssl.create_default_context().get_ciphers()))"
    environments = ({**os.environ, "OPENSSL_CONF": os.devnull}, {**os.environ, **ciphers.environment({}, [])})
    before, after = (subprocess.run([sys.executable, "-c", show], env=each, check=True, capture_output=True,
                                    text=True).stdout.split() for each in environments)

    assert after[0] == "TLS_AES_128_GCM_SHA256"
    assert sorted(before) == sorted(after)
