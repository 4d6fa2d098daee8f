"""The root file system of one container: the host's programs underneath, the container's own layer on top.

As root that is one overlay over `/`. To an ordinary user the kernel refuses that (the mounts below `/` are locked), so
there the root is a small tmpfs with one overlay per top-level directory, and directories with something mounted below
are shown read-only. Everything else is the same for both: own /proc, read-only /sys, six devices, empty /tmp and /run,
homes and credentials of the host hidden, what the image and the volumes ask for put in place.

Sources are looked up before the root changes and targets after it. Looking up `<new root>/var/run/x` from outside would
follow the container's symbolic link `/var/run -> /run` into the host's /run.
"""

# pathlib is too large to carry
# ruff: noqa: PTH101, PTH102, PTH103, PTH110, PTH112, PTH114, PTH115, PTH120, PTH123, PTH208, PTH211

import contextlib
import os
from typing import NotRequired, TypedDict

from trainmaster.cluster.kubelet import linux
from trainmaster.cluster.kubelet.binds import Bind, Opened
from trainmaster.cluster.kubelet.records import Step

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_EVERYWHERE = tuple(f"/dev/{name}" for name in DEVICES)
_SYSTEM = ("proc", "sys", "dev", "run", "tmp")      # made anew for every container
# What containerd masks: they tell about the host or its hardware.
_MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/proc/interrupts", "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
# Where machines keep secrets outside of homes. Files get a harmless stand-in in the container's layer.
SECRET_DIRECTORIES = (
    "/etc/ssh", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/kubernetes", "/etc/rancher", "/etc/docker",
    "/etc/wireguard", "/etc/openvpn", "/etc/letsencrypt", "/etc/NetworkManager/system-connections", "/etc/sudoers.d",
    "/var/lib/kubelet", "/var/lib/docker", "/var/lib/containerd", "/var/lib/rancher", "/var/spool/cron", "/var/mail",
    "/var/backups", "/var/lib/cloud",
)
SECRET_FILES = {
    "etc/shadow": "root:*:19000:0:99999:7:::\n", "etc/shadow-": "", "etc/gshadow": "root:*::\n", "etc/gshadow-": "",
    "etc/krb5.keytab": "", "etc/sudoers": "", "etc/security/opasswd": "",
}

# On disk, beside the layer: what is written there can be fetched when the container has ended, and is no memory.
_TEMPORARY = (("/tmp", 0o1777), ("/run", 0o755))  # noqa: S108  the container's own

_PLAIN = linux.MS_NOSUID | linux.MS_NODEV
_SYSTEM_ATTRIBUTES = linux.ATTR_RDONLY | linux.ATTR_NOSUID | linux.ATTR_NODEV | linux.ATTR_NOEXEC


class Shell(TypedDict):
    """What is to be the container's /bin/sh."""

    at: str        # where that is, without links and the first slash
    link: str      # the program, or
    script: str    # the text of a script


class RootPlan(TypedDict):
    """What the agent asks for."""

    rootless: bool
    host_network: bool        # the container shares the host's network
    scratch: str              # an own directory of the attempt: layers and homes
    image: str                # a directory that takes the place of the host's files; empty for those
    etc: dict[str, str]       # name below /etc -> text: hosts, resolv.conf, hostname
    homes: list[str]          # each replaced by an empty directory of the container's own
    hidden: list[str]         # each replaced by nothing
    devices: list[str]        # further ones than every container has
    private: list[str]        # what others than its owner cannot read: emptied
    shm: str                  # the pod's shared memory
    binds: list[Bind]         # in the order to be mounted
    privileged: bool
    readonly: bool            # readOnlyRootFilesystem
    shell: NotRequired[Shell | None]      # in place of the host's


def build(plan: RootPlan, volumes: list[Opened]) -> None:
    """Make the calling process's mount namespace the container's: afterwards `/` is the new root, the host is gone."""
    scratch = plan["scratch"]
    merged = f"{scratch}/merged"
    with Step("lay out the root file system"):
        os.makedirs(merged, mode=0o755, exist_ok=True)
        linux.propagation(linux.MS_PRIVATE)
        seen = mount_points("/proc/self/mountinfo")
    with Step("open what the container shows of the host"):
        attributes = linux.ATTR_NOSUID | linux.ATTR_RDONLY
        devices = {path: linux.clone_tree(path, attributes) for path in (*_EVERYWHERE, *plan["devices"])}
        plain = linux.ATTR_NODEV | linux.ATTR_NOSUID
        homes = {path: linux.clone_tree(_own_folder(f"{scratch}/homes/{number}", 0o755), plain)
                 for number, path in enumerate(plan["homes"])}
        # A /sys of one's own shows one's own network, so whoever is an ordinary user in the host's gets the host's.
        system = linux.clone_tree("/sys", _SYSTEM_ATTRIBUTES) if plan["rootless"] and plan["host_network"] else -1
        temporary = {} if plan["image"] else {
            path: linux.clone_tree(_own_folder(f"{scratch}{path}", mode), plain) for path, mode in _TEMPORARY}
        shared = linux.clone_tree(plan["shm"], plain)
    if plan["image"]:
        _image(scratch, merged, plan)
    elif plan["rootless"]:
        _layers(scratch, merged, seen, plan)
    else:
        _overlay(scratch, merged, seen, plan)
    with Step("change to the new root"):
        os.chdir(merged)
        linux.pivot_root(".", ".")
    # Before the old root goes: in a user namespace the kernel allows a new /proc or /sys only to whoever sees one.
    with Step("mount /proc and /sys"):
        linux.mount("proc", _directory("/proc"), "proc", _PLAIN | linux.MS_NOEXEC)
        if system >= 0:
            linux.attach(system, _directory("/sys"))
            os.close(system)
        else:
            linux.mount("sysfs", _directory("/sys"), "sysfs", _PLAIN | linux.MS_NOEXEC | linux.MS_RDONLY)
    with Step("let go of the host's root"):
        linux.unmount(".", linux.MNT_DETACH)
        os.chdir("/")
    _furnish(devices, shared, temporary)
    _hide(plan, homes)
    with Step("mount the container's volumes"):
        for target, tree, is_directory in volumes:
            linux.attach(tree, _directory(target) if is_directory else _file(target))
            os.close(tree)
    _close(plan)


def mount_points(path: str) -> list[str]:
    """Where something is mounted, from a mountinfo file."""
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    return [os.fsdecode(line.split()[4].decode("unicode_escape").encode("latin-1")) for line in lines]


def below(points: list[str], directory: str) -> list[str]:
    """The mount points strictly below a directory."""
    prefix = directory.rstrip("/") + "/"
    return [point for point in points if point.startswith(prefix) and point != prefix]


def _own_folder(path: str, mode: int) -> str:
    os.makedirs(path, mode=0o755, exist_ok=True)
    os.chmod(path, mode)
    return path


def _own_files(upper: str, plan: RootPlan) -> None:
    """Files that differ from the host's, put in the layer before it is mounted: saves a mount each."""
    secret = {path: text for path, text in SECRET_FILES.items() if os.path.lexists(f"/{path}")}
    _write_texts(upper, secret, 0o600)
    _write_texts(upper, {f"etc/{name}": text for name, text in plan["etc"].items()}, 0o644)
    if (shell := plan.get("shell")) is not None:
        if shell["script"]:
            _write_texts(upper, {shell["at"]: shell["script"]}, 0o755)
        else:
            _directory(os.path.dirname(f"{upper}/{shell['at']}"))
            with contextlib.suppress(FileExistsError):      # of an attempt that was lost with the machine
                os.symlink(shell["link"], f"{upper}/{shell['at']}")


def _write_texts(upper: str, texts: dict[str, str], mode: int) -> None:
    for path, text in texts.items():
        os.makedirs(os.path.dirname(f"{upper}/{path}"), mode=0o755, exist_ok=True)
        handle = os.open(f"{upper}/{path}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        os.write(handle, text.encode())
        os.close(handle)


def _overlay(scratch: str, merged: str, seen: list[str], plan: RootPlan) -> None:
    upper, work = f"{scratch}/upper", f"{scratch}/work"
    with Step("mount the root file system"):
        os.makedirs(work, mode=0o700, exist_ok=True)
        os.makedirs(upper, mode=0o755, exist_ok=True)
        _own_files(upper, plan)
        # redirect_dir: without it, renaming a directory of the host's tree fails with EXDEV.
        options = f"lowerdir=/,upperdir={_option(upper)},workdir={_option(work)},redirect_dir=on"
        linux.mount("overlay", merged, "overlay", linux.MS_NODEV, options)
    with Step("show the host's other file systems"):
        _other_file_systems("/", merged, seen, plan)


def _image(scratch: str, merged: str, plan: RootPlan) -> None:
    """An image with files of its own: the host's are not seen at all."""
    upper, work = f"{scratch}/upper", f"{scratch}/work"
    with Step("mount the image's root file system"):
        os.makedirs(work, mode=0o700, exist_ok=True)
        os.makedirs(f"{upper}/etc", mode=0o755, exist_ok=True)
        _write_texts(upper, {f"etc/{name}": text for name, text in plan["etc"].items()}, 0o644)
        options = f"lowerdir={_option(plan['image'])},upperdir={_option(upper)},workdir={_option(work)}"
        options += ",userxattr" if plan["rootless"] else ",redirect_dir=on"
        linux.mount("overlay", merged, "overlay", linux.MS_NODEV, options)


def _other_file_systems(directory: str, merged: str, seen: list[str], plan: RootPlan) -> None:
    """An overlay shows one file system: what is mounted below would be empty."""
    skipped = [f"/{name}" for name in _SYSTEM] + [*plan["homes"], *plan["hidden"], *SECRET_DIRECTORIES, plan["scratch"]]
    done: list[str] = []
    for point in sorted(below(seen, directory)):
        if any(point == path or point.startswith(path + "/") for path in skipped + done):
            continue
        done.append(point)
        try:
            tree = linux.clone_tree(point, linux.ATTR_RDONLY | linux.ATTR_NODEV)
            linux.attach(tree, f"{merged}{point}")
            os.close(tree)
        except OSError:
            continue   # a file system of somebody else that we may not show is not shown


def _layers(scratch: str, merged: str, seen: list[str], plan: RootPlan) -> None:
    with Step("mount the root file system"):
        linux.mount("tmpfs", merged, "tmpfs", _PLAIN, "mode=0755,size=64m")
    replaced = {*_SYSTEM, "lost+found", *(path.strip("/") for path in plan["homes"])}
    os.makedirs(f"{scratch}/upper/etc", mode=0o755, exist_ok=True)
    _own_files(f"{scratch}/upper", plan)
    for entry in sorted(os.scandir("/"), key=lambda entry: entry.name):
        target = f"{merged}/{entry.name}"
        if entry.name in replaced:
            continue
        with Step(f"show /{entry.name}"):
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
            elif entry.is_dir():
                os.mkdir(target, 0o755)
                _layer(entry.name, target, scratch, seen)


def _layer(name: str, target: str, scratch: str, seen: list[str]) -> None:
    """One directory: writable where the kernel allows it."""
    occupied = below(seen, f"/{name}")
    if occupied and f"/{name}" not in seen and "/" not in name:
        _spread(name, target, scratch, seen)
        return
    if not occupied and f"/{name}" not in seen:
        upper, work = f"{scratch}/upper/{name}", f"{scratch}/work/{name}"
        os.makedirs(upper, mode=0o755, exist_ok=True)
        os.makedirs(work, mode=0o700, exist_ok=True)
        options = f"lowerdir=/{_option(name)},upperdir={_option(upper)},workdir={_option(work)},userxattr"
        try:
            linux.mount("overlay", target, "overlay", linux.MS_NODEV, options)
        except OSError:
            if name == "etc":
                raise       # the pod's own hosts and resolv.conf live in this layer
        else:
            return
    tree = linux.clone_tree(f"/{name}", linux.ATTR_RDONLY | linux.ATTR_NODEV)
    linux.attach(tree, target)
    os.close(tree)


def _spread(name: str, target: str, scratch: str, seen: list[str]) -> None:
    """A top-level directory with something mounted below it (a home in /var, say) cannot be a layer. The directories in
    it can, but for the one that leads to the mount; and what a pod adds beside them has a place."""
    for entry in sorted(os.scandir(f"/{name}"), key=lambda entry: entry.name):
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), f"{target}/{entry.name}")
        elif entry.is_dir():
            os.mkdir(f"{target}/{entry.name}", 0o755)
            _layer(f"{name}/{entry.name}", f"{target}/{entry.name}", scratch, seen)


def _furnish(devices: dict[str, int], shared: int, temporary: dict[str, int]) -> None:
    with Step("mount /dev"):
        linux.mount("tmpfs", _directory("/dev"), "tmpfs", _PLAIN | linux.MS_NOEXEC, "mode=0755,size=64k")
        for path, tree in devices.items():
            linux.attach(tree, _file(path))
            os.close(tree)
        os.mkdir("/dev/pts", 0o755)
        linux.mount("devpts", "/dev/pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC,
                    "newinstance,ptmxmode=0666,mode=0620")
        linux.attach(shared, _directory("/dev/shm"))  # noqa: S108  the container's own
        os.close(shared)
        for link, to in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"),
                         ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")):
            os.symlink(to, f"/dev/{link}")
    if not temporary:
        return           # an image's own /tmp and /run may have something in them
    with Step("mount /tmp and /run"):
        for path, tree in temporary.items():
            linux.attach(tree, _directory(path))
            os.close(tree)
        if os.path.isdir("/var/tmp") and os.statvfs("/var/tmp").f_flag & os.ST_RDONLY:  # noqa: S108
            linux.mount("tmpfs", "/var/tmp", "tmpfs", _PLAIN, "mode=1777")  # noqa: S108
        os.makedirs("/run/lock", exist_ok=True)
        os.chmod("/run/lock", 0o1777)  # noqa: S103  as every distribution has it


def _hide(plan: RootPlan, homes: dict[str, int]) -> None:
    with Step("hide the host's homes"):
        for path, tree in homes.items():
            linux.attach(tree, _directory(path))
            os.close(tree)
    with Step("hide what is secret"):
        for path in () if plan["image"] else (*SECRET_DIRECTORIES, *plan["hidden"], *plan["private"]):
            if os.path.islink(path) or path[1:] in SECRET_FILES:
                continue
            if os.path.isdir(path):
                linux.mount("tmpfs", path, "tmpfs", _PLAIN | linux.MS_NOEXEC, "mode=0755,size=1m")
            elif os.path.exists(path):
                linux.mount("/dev/null", path, "", linux.MS_BIND)


def _close(plan: RootPlan) -> None:
    """Last: make read-only what must be, now that every mount point exists."""
    with Step("close what must not be written"):
        for path in plan["hidden"]:
            if os.path.ismount(path):
                linux.restrict(path, linux.ATTR_RDONLY)
        if not plan["privileged"]:
            _mask()
        if plan["readonly"]:
            linux.restrict("/", linux.ATTR_RDONLY)
            kept = {*plan["homes"], *(bind["target"] for bind in plan["binds"])}
            for name in os.listdir("/") if plan["rootless"] else ():      # there each of them is a mount of its own
                path = f"/{name}"
                if os.path.ismount(path) and name not in _SYSTEM and path not in kept:
                    linux.restrict(path, linux.ATTR_RDONLY)


def _mask() -> None:
    for path in _MASKED:
        if os.path.isdir(path):
            linux.mount("tmpfs", path, "tmpfs", _PLAIN | linux.MS_NOEXEC | linux.MS_RDONLY, "mode=0555,size=4k")
        elif os.path.exists(path):
            linux.mount("/dev/null", path, "", linux.MS_BIND)
    for path in _READ_ONLY:
        if os.path.exists(path):
            tree = linux.clone_tree(path, linux.ATTR_RDONLY)
            linux.attach(tree, path)
            os.close(tree)


def _directory(path: str) -> str:
    os.makedirs(path, mode=0o755, exist_ok=True)
    return path


def _file(path: str) -> str:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    return path


def _option(path: str) -> str:
    """Overlay reads `,` and `:` in its options as separators and `\\` as the way to say them."""
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")
