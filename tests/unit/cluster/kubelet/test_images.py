"""The names of images: which are none, and which mean the same."""

import pytest

from trainmaster.cluster.kubelet import images
from trainmaster.cluster.kubelet.images import ImageError

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param("python", "python", id="a bare name is itself"),
        pytest.param("docker.io/library/python:3.11", "python", id="registry defaults and tag are left out"),
        pytest.param("docker.io/kubeflow/x:1", "kubeflow/x", id="an organisation stays"),
        pytest.param("localhost:5000/x", "localhost:5000/x", id="the port of a registry is not a tag"),
        pytest.param("localhost:5000/x:2", "localhost:5000/x", id="a tag behind a port is"),
        pytest.param("x@sha256:0123", "x", id="a digest is left out"),
    ],
)
def test_repository(image: str, expected: str) -> None:
    assert expected == images.repository(image)


@pytest.mark.parametrize(
    "name",
    [
        "python", "docker.io/library/python:3.11", "localhost:5000/x", "LocalHost:5000/a/b__c:V1.0-rc_1",
        "horovod/horovod:0.20.0-tf2.3.0-torch1.6.0-mxnet1.5.0-py3.7-cpu", f"x:1@{DIGEST}", f"x@{DIGEST}",
    ],
)
def test_what_registries_take_is_a_name(name: str) -> None:
    images.check_name(name)


@pytest.mark.parametrize(
    "name", ["", "<训练镜像>", "two words", "x:", "x:-1", "/x", "x//y", "x@sha256:12", "-x", "x_", "https://x/y"]
)
def test_what_is_not_an_image_name_is_said_with_an_example(name: str) -> None:
    with pytest.raises(ImageError, match="is not an image name") as raised:
        images.check_name(name)

    assert "InvalidImageName" == raised.value.reason


def test_capitals_are_named_as_the_cause() -> None:
    with pytest.raises(ImageError, match="only small letters"):
        images.check_name("mine/MyNet:1")
