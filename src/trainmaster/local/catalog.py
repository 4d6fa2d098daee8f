"""The image catalog as a person reads it."""

from trainmaster.cluster.kubelet.images import shipped


def known_images() -> list[tuple[str, str, str]]:
    """Name, packages and entrypoint of every image that is explained."""
    return [
        (name, ", ".join(entry.packages) or "those of this machine",
         " ".join(entry.entrypoint) or "none: the container must give a command")
        for entry in shipped() for name in entry.names
    ]
