"""The embedded API server with its own controllers and nothing of ours beside it: what a program by others runs on.

    python tests/kubernetes/bare_server.py FOLDER [MANIFEST...]

No operator, scheduler or node, no definitions but those in the manifests. FOLDER/kubeconfig appears when it serves.
"""

import asyncio
import contextlib
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import yaml

from trainmaster.api.meta import Object, Resource, namespace_of
from trainmaster.cluster.apiserver.auth import Authenticator, Identity
from trainmaster.cluster.apiserver.http import serve
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.controllers import main as controllers
from trainmaster.cluster.store import Store
from trainmaster.kube import kubeconfig
from trainmaster.kube.client import Client
from trainmaster.local import keys
from trainmaster.runtime.clock import RealClock

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # definitions by others are a megabyte each
ADMIN = Identity("admin", ("system:masters", "system:authenticated"))


async def main(folder: Path, manifests: list[Path]) -> None:
    (folder / "pki").mkdir(parents=True, exist_ok=True)
    made, clock = keys.ensure(folder / "pki", datetime.now(UTC)), RealClock()
    store = Store.open(None)
    server = ApiServer(store, clock=clock)
    await server.start()
    token = made.tokens["admin"]
    listening = await serve(server, Authenticator({token: ADMIN}), made.server_context())
    client = Client(InProcess(server, ADMIN))
    work = asyncio.create_task(controllers.run(lambda _name: client, clock, authority=made.authority))
    for thing in (each for path in manifests for each in yaml.load_all(path.read_text(), LOADER) if each):
        await install(client, thing)
    document = kubeconfig.document(f"https://127.0.0.1:{listening.port}", made.authority, token)
    (folder / "kubeconfig.new").write_text(yaml.safe_dump(document))
    (folder / "kubeconfig.new").rename(folder / "kubeconfig")
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await asyncio.wait([work, asyncio.create_task(ended.wait())], return_when=asyncio.FIRST_COMPLETED)
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
    await server.close()
    await listening.stop()
    await store.close()


async def install(client: Client, thing: Object) -> None:
    group, _, version = thing["apiVersion"].rpartition("/")
    place = f"/apis/{group}/{version}" if group else f"/api/{version}"
    found = (await client.request("GET", place))["resources"]
    served = next(each for each in found if each["kind"] == thing["kind"] and "/" not in each["name"])
    resource = Resource(group, version, served["name"], thing["kind"], served["namespaced"])
    await client.create(resource, thing, namespace=namespace_of(thing) if served["namespaced"] else "")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]]))
