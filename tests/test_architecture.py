"""Imports point one way, and pure packages know nothing of the world. The tables here are the architecture as data."""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "trainmaster"

PURE = {"api", "frameworks", "gang", "engine", "progress"}
MAY_IMPORT: dict[str, set[str]] = {
    "api": set(),
    "frameworks": {"api"},
    "gang": {"api"},
    "engine": {"api", "frameworks", "gang"},
    "progress": {"api"},
    "kube": {"api"},
    "runtime": {"api", "kube"},
    "cluster": {"api", "kube", "runtime"},
    "operator": PURE | {"kube", "runtime"},
    "sdk": {"api", "progress", "kube", "runtime"},
    "local": {"api", "frameworks", "progress", "kube", "runtime", "cluster", "operator", "sdk"},
    "cli": {"api", "progress", "kube", "runtime", "sdk", "local", "operator"},
    "testing": PURE | {"kube", "runtime", "operator", "cluster", "sdk", "local"},
    "": {"sdk", "cli"},      # `import trainmaster` is the SDK, `python -m trainmaster` the command
}
# Inside the cluster: who may import which of its parts.
CLUSTER_MAY_IMPORT: dict[str, set[str]] = {
    "store": set(),
    "quota": set(),
    "apiserver": {"store", "quota"},
    "scheduler": set(),
    "controllers": {"quota"},
    "network": set(),
    "kubelet": {"network"},
    "simulated": set(),
}
KINDS = ("TFJob", "PyTorchJob", "XGBoostJob", "MXJob", "PaddleJob", "JAXJob")
WORLD = {"asyncio", "os", "random", "socket", "subprocess", "threading", "time", "logging", "secrets", "pathlib"}


@dataclass(frozen=True)
class Module:
    path: Path

    @property
    def name(self) -> str:
        parts = self.path.relative_to(SOURCE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        """The package below trainmaster, or "" for the modules of trainmaster itself."""
        parts = self.path.relative_to(SOURCE).parts
        return parts[0] if len(parts) > 1 else ""

    @property
    def imports(self) -> set[str]:
        found: set[str] = set()
        for node in ast.walk(ast.parse(self.path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
        return found

    @property
    def our_imports(self) -> set[tuple[str, ...]]:
        return {tuple(name.split(".")[1:]) for name in self.imports if name.startswith("trainmaster.")}


# `programs` holds training programs that pods run: they are shipped, never imported.
MODULES = [Module(path) for path in sorted(SOURCE.rglob("*.py")) if "programs" not in path.parts]
each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)


@each_module
def test_imports_point_one_way(module: Module) -> None:
    packages = {parts[0] for parts in module.our_imports if parts[0] != "__version__"}

    assert packages - {module.package} <= MAY_IMPORT[module.package], module.path


@each_module
def test_parts_of_the_cluster_meet_only_through_the_api(module: Module) -> None:
    parts = module.name.split(".")
    if parts[1:2] != ["cluster"] or len(parts) < 3:
        return
    used = {parts[1] for parts in module.our_imports if parts[0] == "cluster" and len(parts) > 1}

    assert used - {parts[2]} <= CLUSTER_MAY_IMPORT[parts[2]], module.path


@each_module
def test_pure_packages_know_nothing_of_the_world(module: Module) -> None:
    if module.package in PURE:
        used = {name.split(".")[0] for name in module.imports}

        assert not used & WORLD, f"{module.path}: take the value as an argument instead"


@each_module
def test_every_module_says_why_it_exists(module: Module) -> None:
    assert ast.get_docstring(ast.parse(module.path.read_text())), module.path


@each_module
def test_no_kind_of_job_is_named_where_all_are_treated_alike(module: Module) -> None:
    """A new kind is a type in `api`, a module in `frameworks` and a line in its registry, and nothing else."""
    if module.package in ("engine", "gang"):
        text = module.path.read_text()

        assert not [name for name in KINDS if name in text or name.lower() in text], module.path
