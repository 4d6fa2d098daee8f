"""Which of the ciphers of TLS 1.3 the control plane prefers: AES with 128 bits, as kube-apiserver does.

All three that TLS 1.3 has are good for decades, so the one that costs least comes first; OpenSSL by itself takes the
dearest. A long list is mostly encryption on one side and decryption on the other, and becomes a fifteenth cheaper for
both. Python cannot say this before 3.15 (`set_ciphers` is about older versions of TLS), OpenSSL's configuration can,
and it is read when the library is loaded, hence by way of the environment. Where a person or a distribution has
configured something, that counts: we set nothing.
"""

import re
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

OURS = Path(__file__).with_name("openssl.cnf")
# Where distributions look for the configuration of the machine; besides, there is the place of this Python's OpenSSL.
_POLICY = Path("/etc/crypto-policies/config")
_THEIRS = (*map(Path, ("/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/usr/lib/ssl/openssl.cnf",
                       "/usr/local/ssl/openssl.cnf")), _POLICY)
# What decides about TLS or about who computes: sections of their own, providers, other files. A comment does not.
_DECIDES = re.compile(r"^\s*(ssl_conf|providers|alg_section|engines|fips_mode|\.include)\b", re.MULTILINE)


def environment(given: Mapping[str, str], theirs: Iterable[Path] | None = None) -> dict[str, str]:
    """For the process of the control plane; `given` is the environment that it has otherwise."""
    if "OPENSSL_CONF" in given or any(map(_decides, _theirs() if theirs is None else theirs)):
        return {}
    return {"OPENSSL_CONF": str(OURS)}


def _theirs() -> Iterable[Path]:
    return (*_THEIRS, Path(ssl.get_default_verify_paths().openssl_cafile).with_name("openssl.cnf"))


def _decides(path: Path) -> bool:
    try:
        said = path.read_text(errors="replace")
    except FileNotFoundError:
        return False
    except OSError:
        return True      # nobody knows what it says
    return path == _POLICY or _DECIDES.search(said) is not None
