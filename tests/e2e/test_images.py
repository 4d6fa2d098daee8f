"""Images that a person adds, and names that are none: real commands, as root and as an ordinary user."""

import io
import json
import re
import subprocess
import tarfile
from pathlib import Path

from tests.e2e.person import Person

JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: NAME}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: IMAGE
"""
# What the image runs: it sees its own files and none of the machine's.
PROGRAM = 'echo "$GREETING from $(cat /etc/motd) in $(pwd)"; test ! -e /usr/bin/env && test ! -e /home && echo alone'


def job(name: str, image: str) -> str:
    return JOB.replace("NAME", name).replace("IMAGE", json.dumps(image, ensure_ascii=False))


def test_an_oci_archive_runs_with_its_own_files_and_words(person: Person) -> None:
    archive = person.home / "image.tar"
    oci_archive(archive)

    added = person.trainmaster("images", "add", "mine/tool:1", "--rootfs", str(archive), "--env", "GREETING=hello")
    done = person.trainmaster("run", "-", text=job("own-root", "mine/tool:1"))

    assert 0 == added.returncode, added.stderr
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "hello from the image in /work" in done.stdout
    assert "alone" in done.stdout
    assert re.search(r"^mine/tool:1 .* you$", person.trainmaster("images").stdout, re.MULTILINE)


def test_a_name_that_is_none_ends_the_run_with_the_reason(person: Person) -> None:
    done = person.trainmaster("run", "-", text=job("no-name", "<训练镜像>"))

    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert "is not an image name" in done.stdout + done.stderr


def oci_archive(path: Path) -> None:
    """An image with a shell, as small as this machine's own shell allows."""
    files = {"etc/motd": b"the image"}
    for program in ("/bin/sh", "/bin/cat"):
        files[program[1:]] = Path(program).read_bytes()
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+)", said):
            files[library[1:]] = Path(library).read_bytes()
    layer = tar({**files, "work/": b""})
    config = json.dumps({"config": {"Entrypoint": ["/bin/sh", "-c"], "Cmd": [PROGRAM], "WorkingDir": "/work"}}).encode()
    blobs = {"sha256:" + f"{number:064x}": data for number, data in enumerate((layer, config))}
    parts = [{"digest": name} for name in blobs]
    manifest = json.dumps({"config": parts[1], "layers": parts[:1]}).encode()
    blobs["sha256:" + "f" * 64] = manifest
    index = json.dumps({"manifests": [{"digest": "sha256:" + "f" * 64}]}).encode()
    named = {"blobs/" + name.replace(":", "/"): data for name, data in blobs.items()}
    path.write_bytes(tar({"oci-layout": b"{}", "index.json": index, **named}))
    path.chmod(0o644)


def tar(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name.rstrip("/"))
            member.mode, member.size = 0o755, len(data)
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.addfile(member, io.BytesIO(data))
    return made.getvalue()
