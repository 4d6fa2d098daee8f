"""Environments for `run --requirements`: what the image names stand for that `sdk.requirements` leaves in the home.

The list is put on top of the image's own packages when the node needs it, so the same list is the same environment,
installed once, whoever asks and however the file was called; and another release with other packages has another.
"""

from collections.abc import Callable

from msgspec.structs import replace

from trainmaster.cluster.kubelet.catalog import Catalog, Document, Entry, known, shipped
from trainmaster.cluster.kubelet.images import Image, ImageError, Images
from trainmaster.local.catalog import Refused, users
from trainmaster.local.home import Home
from trainmaster.sdk.requirements import PREFIX, kept, read


class WithRecipes:
    """The images of a catalog, and those that were written here."""

    def __init__(self, home: Home, others: Images) -> None:
        self._home, self._others = home, others
        self._known: dict[str, Catalog] = {}

    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        """Make the image usable. Raises ImageError."""
        if not name.startswith(PREFIX):
            return await self._others.prepare(name, say)
        if name not in self._known:
            self._known[name] = Catalog(self._home.envs, document(self._home, name))
        return await self._known[name].prepare(name, say)


def document(home: Home, name: str) -> Document:
    """What the name of a list of packages means on this machine. Raises ImageError."""
    recipe = read(home.path, name)
    if recipe is None:
        raise ImageError("ErrImagePull", f"'{name}' stands for a list of packages that this machine does not have. Run "
                         "the script with --requirements here.")
    try:
        catalog = known([shipped(), users(home)])
    except Refused as problem:
        raise ImageError("ErrImagePull", str(problem)) from problem
    base = catalog.entry(recipe.image) or Entry((recipe.image,))
    if base.rootfs:
        raise ImageError("ErrImagePull", f"image '{recipe.image}' has a root file system of its own, to which no "
                         "packages can be added. Make one that has them, or leave --image out.")
    packages = (*base.packages, *(_plain(recipe.requirements) or ("-r", str(kept(home.path, recipe.requirements)))))
    entry = replace(base, names=(name,), packages=packages, modules=(), note="")
    return Document((entry,), dict(catalog.pythons))


def _plain(requirements: str) -> list[str]:
    """The packages, if there is nothing else in the list: people are told what is installed, not from which file."""
    lines = [line.partition(" #")[0].strip() for line in requirements.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    return [] if any(line.startswith("-") or "--" in line or line.endswith("\\") for line in found) else found
