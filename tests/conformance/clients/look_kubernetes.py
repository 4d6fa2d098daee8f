"""The Python client's stream API: exec, its exit code, and a port. Prints what it saw."""

import sys

from kubernetes.stream import portforward, stream

from kubernetes import client, config

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
asked = {"name": "web", "namespace": sys.argv[2], "stderr": True, "stdout": True, "tty": False}
script = "echo out; echo err >&2"
said = stream(core.connect_get_namespaced_pod_exec, command=["sh", "-c", script], stdin=False, **asked)
print("exec", sorted(said.split()))

script = "read line; echo got $line; exit 5"
talk = stream(core.connect_get_namespaced_pod_exec, command=["sh", "-c", script], stdin=True, _preload_content=False,
              **asked)
talk.write_stdin("typed\n")
talk.run_forever(timeout=60)
print("typed", talk.read_stdout().strip(), talk.returncode)

ports = portforward(core.connect_get_namespaced_pod_portforward, "web", sys.argv[2], ports="8000")
web = ports.socket(8000)
web.setblocking(True)
web.sendall(b"GET /page HTTP/1.0\r\n\r\n")
answer = b""
while piece := web.recv(4096):
    answer += piece
print("port", answer.split(b"\r\n\r\n")[1].decode().strip(), ports.error(8000))
