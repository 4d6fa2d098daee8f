"""What a user may hand to `run`, and the sentence for what they may not."""

import io
from pathlib import Path

import pytest

from trainmaster.sdk.errors import ManifestError
from trainmaster.sdk.manifests import read

JOB = "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: a}\n"


def names(*targets: str, stdin: str = "") -> list[str]:
    return [manifest.thing["metadata"]["name"] for manifest in read(targets, io.StringIO(stdin))]


def test_files_folders_and_standard_input_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "2.yml").write_text(JOB.replace("name: a", "name: c"))
    (tmp_path / "folder" / "1.yaml").write_text(JOB.replace("name: a", "name: b"))
    (tmp_path / "folder" / "notes.txt").write_text("not a manifest")
    (tmp_path / "file.yaml").write_text(f"---\n{JOB}---\n---\n{JOB.replace('name: a', 'name: a2')}")

    assert ["a", "a2", "b", "c", "d"] == names(
        str(tmp_path / "file.yaml"), str(tmp_path / "folder"), "-", stdin=JOB.replace("name: a", "name: d")
    )


def test_a_list_is_its_items() -> None:
    assert ["a"] == names("-", stdin="apiVersion: v1\nkind: List\nitems:\n- " + JOB.strip().replace("\n", "\n  "))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "no object in -", id="nothing in it"),
        pytest.param("- a\n- b\n", "standard input, line 1: is not an object", id="a list of words"),
        pytest.param("kind: TFJob\nmetadata: {name: a}\n", "has no 'apiVersion'", id="no apiVersion"),
        pytest.param("apiVersion: kubeflow.org/v1\nkind: TFJob\n", "has no 'metadata.name'", id="no name"),
        pytest.param(JOB + "---\nkind: [\n", "line 6", id="the line of a syntax error"),
        pytest.param(JOB + "spec: {a: 1, a: 2}\n", "line 4, column 14: 'a' is written twice", id="a key twice"),
        pytest.param("kind: TFJob\n\tspec: {}\n", "spaces, not tabs", id="a tab"),
        pytest.param("!!python/object/apply:os.system [ls]", "could not determine a constructor", id="no code is run"),
    ],
)
def test_what_is_wrong_is_said_with_the_place(text: str, expected: str) -> None:
    with pytest.raises(ManifestError, match=expected.replace(".", r"\.").replace("[", r"\[")):
        names("-", stdin=text)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("https://example.org/job.yaml", "not fetched from the network", id="an address"),
        pytest.param("/no/such/file.yaml", "No such file", id="a file that is not there"),
    ],
)
def test_targets_that_cannot_be_read(target: str, expected: str) -> None:
    with pytest.raises(ManifestError, match=expected):
        names(target)


def test_an_empty_folder_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"\.yaml, .* main\.py or a train\.py"):
        names(str(tmp_path))
