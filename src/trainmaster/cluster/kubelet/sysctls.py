"""Settings of the kernel that a pod wants in its own namespaces. Pure.

Those that Kubernetes calls safe are set, because they are the pod's own and cannot harm others. A pod that wants
another one, or one of a namespace that it shares with the machine, is refused, as by a kubelet that was told nothing
else.
"""

from trainmaster.api.meta import Object

FORBIDDEN = "SysctlForbidden"
_OF_NETWORK = "net."
_SAFE = frozenset({
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
})


def wanted(pod: Object) -> dict[str, str]:
    """Path below /proc/sys -> value."""
    return {name.replace(".", "/"): value for name, value in _named(pod).items()}


def refusal(pod: Object) -> tuple[str, str] | None:
    """Why the pod cannot be had on this node: the API's word for it and a sentence."""
    for name in _named(pod):
        if name not in _SAFE:
            return FORBIDDEN, f'Pod was rejected: forbidden sysctl: "{name}" not allowlisted'
        if name.startswith(_OF_NETWORK) and pod["spec"].get("hostNetwork"):
            return FORBIDDEN, f'Pod was rejected: forbidden sysctl: "{name}" not allowed with host net enabled'
    return None


def _named(pod: Object) -> dict[str, str]:
    """By names with dots; written with slashes they mean the same."""
    asked = (pod["spec"].get("securityContext") or {}).get("sysctls") or ()
    return {str(one.get("name", "")).replace("/", "."): str(one.get("value", "")) for one in asked}
