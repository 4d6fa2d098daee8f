"""An image name becomes an environment or a root file system: which entry explains it, and what is said about it."""

import re
import sys
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet import catalog
from trainmaster.cluster.kubelet.catalog import BadCatalog, Catalog, Document, Entry, Python
from trainmaster.cluster.kubelet.images import PROGRAMS, ImageError, check_name

NOTHING_TO_SAY = lambda _: None  # noqa: E731


def of(*entries: Entry, **pythons: Python) -> Document:
    return Document(entries, pythons)


def test_every_shipped_entry_is_well_formed_and_its_programs_exist() -> None:
    shipped = catalog.shipped()
    everything = catalog.known([shipped])
    for entry in shipped.images:
        everything.packages(entry)
        for name in entry.names:
            check_name(name)
        for program in entry.files.values():
            assert (PROGRAMS / program).is_file(), program
    for python in shipped.pythons.values():
        assert not python.finish or (PROGRAMS / python.finish).is_file()
        assert all("==" in package for package in (*python.packages, *python.bare)), "what is shipped is pinned"


def test_a_program_that_has_a_lesson_finds_it_beside_itself() -> None:
    for entry in catalog.shipped().images:
        for path, program in entry.files.items():
            if re.search(r"^import lesson$", (PROGRAMS / program).read_text(), re.MULTILINE):
                assert "lesson.py" == entry.files.get(str(Path(path).parent / "lesson.py")), path


@pytest.mark.parametrize("name", ["alpine", "busybox", "nginx", "python"])
def test_arguments_take_the_place_of_what_a_general_image_runs(name: str) -> None:
    entry = catalog.known([catalog.shipped()]).entry(name)

    assert entry is not None
    assert ((), True) == (entry.entrypoint, bool(entry.command))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("images: [{names: [x], entrypont: [python]}]", "entrypont", id="an unknown field is named"),
        pytest.param("images: [{names: x}]", r"names", id="a name must be in a list"),
        pytest.param("images: [{entrypoint: [x]}]", "names", id="an entry needs names"),
        pytest.param("images: [\n  {", "line 2", id="what is not YAML is said with its line"),
    ],
)
def test_a_bad_document_is_refused_by_name(text: str, expected: str) -> None:
    with pytest.raises(BadCatalog, match=expected):
        catalog.read(text)


async def test_a_known_image_runs_in_an_interpreter_that_already_has_its_modules(tmp_path: Path) -> None:
    document = of(Entry(names=("x",), python="p"), p=Python(packages=("anything",), modules=("json",)))

    image = await Catalog(tmp_path / "envs", document).prepare("x:1", NOTHING_TO_SAY)

    assert image.environment["PATH"].startswith(str(Path(sys.executable).parent))
    assert not (tmp_path / "envs").exists(), "nothing had to be installed"


async def test_a_name_nobody_explains_runs_with_the_programs_of_the_machine_and_warns(tmp_path: Path) -> None:
    image = await Catalog(tmp_path, Document()).prepare("gcr.io/mine/trainer:7", NOTHING_TO_SAY)

    assert () == image.entrypoint
    assert "gcr.io/mine/trainer:7" in image.warning


@pytest.mark.parametrize("image", [
    "kubeflow/tf-dist-mnist-test:1.0", "gcr.io/kubeflow-ci/tf-dist-mnist-test:1.0",
    "volcanosh/dist-mnist-tf-example:0.0.1",
    "kubeflow/tf-mnist-with-summaries:latest", "kubeflow/pytorch-mnist", "kubeflowkatib/pytorch-mnist:v1beta1-45c5727",
    "kubeflow/pytorch-dist-mnist:latest", "kubeflow/pytorch-dist-sendrecv-test:1.0",
    "kubeflow/pytorch-elastic-example-echo:1.0.0", "kubeflow/xgboost-dist-iris:latest",
    "kubeflow/lightgbm-dist-py-test:1.0", "kubeflow/jaxjob-simple:latest", "docker.io/kubeflow/jaxjob-simple",
    "tensorflow/tensorflow:2.11.0", "tensorflow/tensorflow:latest-gpu", "horovod/horovod:0.28.1",
    "horovod/horovod:0.20.0-tf2.3.0-torch1.6.0-mxnet1.5.0-py3.7-cpu", "mpioperator/mpi-pi:openmpi",
    "mpioperator/mpi-pi:mpich", "mpioperator/mpi-pi:intel", "tensorboard", "busybox:1.36", "alpine:3.20", "nginx:1.25",
    "python:3.9-slim",
])
def test_the_images_of_documents_and_examples_are_known(image: str) -> None:
    assert catalog.known([catalog.shipped()]).entry(image) is not None


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param("x:2", "two", id="an entry for the tag comes first"),
        pytest.param("x:3", "all", id="one without a tag is for all others"),
        pytest.param("x", "all", id="no tag is the tag latest"),
        pytest.param("docker.io/library/y", "latest", id="and an entry for latest explains it"),
    ],
)
async def test_which_entry_explains_a_tag(image: str, expected: str, tmp_path: Path) -> None:
    document = of(*(Entry(names=(name,), entrypoint=(what,))
                    for name, what in (("x:2", "two"), ("x", "all"), ("y:latest", "latest"))))

    found = await Catalog(tmp_path, document).prepare(image, NOTHING_TO_SAY)

    assert (expected,) == found.entrypoint


async def test_the_users_file_wins_and_is_read_while_the_cluster_runs(tmp_path: Path) -> None:
    mine = tmp_path / "images.yaml"
    found = Catalog(tmp_path, of(Entry(names=("x",), entrypoint=("ours",))), mine)

    assert ("ours",) == (await found.prepare("x", NOTHING_TO_SAY)).entrypoint
    mine.write_text("images: [{names: [x], entrypoint: [mine]}]")
    assert ("mine",) == (await found.prepare("x", NOTHING_TO_SAY)).entrypoint
    mine.write_text("images: [{name: x}]")
    with pytest.raises(ImageError, match=r"images.yaml cannot be read: .*name"):
        await found.prepare("x", NOTHING_TO_SAY)


async def test_a_python_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    document = of(Entry(names=("x",), python="torch"), pytorch=Python())

    with pytest.raises(ImageError, match="no Python named 'torch', only pytorch"):
        await Catalog(tmp_path, document).prepare("x", NOTHING_TO_SAY)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param("tensorflow/tensorflow:2.11.0", "it runs with TensorFlow 2.21 here", id="another version"),
        pytest.param("tensorflow/tensorflow:2.21.0-gpu", "", id="the same version is not worth a word"),
        pytest.param("nginx", "a small web server of Python stands in for it", id="another program"),
    ],
)
def test_what_is_substituted_is_said(image: str, expected: str) -> None:
    everything = catalog.known([catalog.shipped()])
    entry = everything.entry(image)

    assert entry is not None
    assert expected == everything.substitute(image, entry)


async def test_files_of_this_machine_are_shown_as_long_as_they_are_there(tmp_path: Path) -> None:
    (tmp_path / "task.py").touch()
    found = Catalog(tmp_path, of(Entry(names=("x",), files={"/app/task.py": str(tmp_path / "task.py")})))

    assert {"/app/task.py": tmp_path / "task.py"} == (await found.prepare("x", NOTHING_TO_SAY)).files
    (tmp_path / "task.py").unlink()
    with pytest.raises(ImageError, match=r"task\.py, which is not there any more"):
        await found.prepare("x", NOTHING_TO_SAY)


async def test_a_root_file_system_that_is_gone_says_what_to_do(tmp_path: Path) -> None:
    document = of(Entry(names=("mine/net",), rootfs=str(tmp_path / "gone")))

    with pytest.raises(ImageError, match="images add mine/net"):
        await Catalog(tmp_path, document).prepare("mine/net", NOTHING_TO_SAY)
