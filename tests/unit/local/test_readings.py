"""What pods print and write, read for jobs that say nothing themselves."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.unit.progress.test_events import event, record, simple

from trainmaster.api.core import PODS
from trainmaster.api.membership import INDEX, JOB_NAME, JOB_ROLE, ROLE
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.settings import NodeSettings, places_of
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request, Response, Stream
from trainmaster.local import readings, reports
from trainmaster.local.readings import Readings
from trainmaster.progress.report import Report, decoded
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


@dataclass
class Door:
    """The other end: keeps what is said."""

    said: list[tuple[str, str, Report]] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        self.said.append((request.path.rpartition("/")[2], request.headers[reports.SOURCE], decoded(request.body)))
        return Response(200)

    async def open(self, request: Request) -> Stream:
        raise AssertionError(request)

    async def close(self) -> None:
        return


@dataclass
class Story:
    clock: VirtualClock
    client: Client
    settings: NodeSettings
    door: Door
    readings: Readings

    async def pod(self, index: int, *, state: str = "running") -> Object:
        labels = {JOB_NAME: "a", ROLE: "worker", INDEX: str(index),
                  **({JOB_ROLE: "master"} if index == 0 else {})}
        await self.client.create(PODS, {
            "metadata": {"name": f"a-worker-{index}", "namespace": "default", "labels": labels},
            "spec": {"nodeName": "here", "containers": [{"name": "main", "image": "x"}],
                     "volumes": [{"name": "work", "emptyDir": {}}]}})
        ended = {"exitCode": 0, "finishedAt": "2020-01-01T00:00:00Z"} if state == "terminated" else {}
        status = {"phase": "Running", "containerStatuses": [
            {"name": "main", "image": "x", "imageID": "", "ready": True, "restartCount": 0, "state": {state: ended}}]}
        return await self.client.patch(PODS, f"a-worker-{index}", "default", {"status": status}, subresource="status")

    def prints(self, pod: Object, text: str) -> None:
        folder = places_of(self.settings, pod).log("main", 0)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "0.log").open("a") as file:
            file.write(text)

    async def look(self) -> list[tuple[str, str, Report]]:
        """What is said in the next look."""
        self.door.said.clear()
        await self.clock.settle()
        await self.readings.look()
        return list(self.door.said)


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    clock = VirtualClock()
    settings = NodeSettings(name="here", run=tmp_path / "run", logs=tmp_path / "logs", volumes=tmp_path / "volumes",
                            cpus="1", memory="1Gi")
    async with embedded(clock) as cluster:
        client = cluster.client()
        door = Door()
        reader = Readings(settings, client, {"here": door}, clock)
        watching = asyncio.create_task(reader.informer.run())
        try:
            await reader.informer.synced()
            yield Story(clock, client, settings, door, reader)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def test_the_last_of_what_is_new_is_told_once(story: Story) -> None:
    pod = await story.pod(0)
    story.prints(pod, "step 1/10 loss 3.0\nstep 2/10 loss 2.0\nstep 3/1")

    assert ("a-worker-0", "log", Report(0.2, None, {"loss": 2.0})) == (await story.look())[0]
    assert [] == await story.look()
    story.prints(pod, "0 loss 1.0\n")
    assert [("a-worker-0", "log", Report(0.3, None, {"loss": 1.0}))] == await story.look()


async def test_the_last_figure_of_a_pod_that_ends_is_told_at_once(story: Story) -> None:
    pod = await story.pod(0)
    running = asyncio.create_task(story.readings.run())
    try:
        await story.clock.settle()
        began = story.clock.monotonic()
        story.prints(pod, "step 10/10 loss 0.5")                # its last line is not ended
        ended = {"terminated": {"exitCode": 0}}
        await story.client.patch(PODS, "a-worker-0", "default", {"status": {"containerStatuses": [
            {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": ended}]}},
            subresource="status")
        async with asyncio.timeout(60):
            while not story.door.said:  # noqa: ASYNC110  files are read in a thread, which virtual time does not see
                await asyncio.sleep(0.01)

        assert [("a-worker-0", "log", Report(1.0, None, {"loss": 0.5}))] == story.door.said
        assert began == story.clock.monotonic(), "nobody waited for the next look"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_bar_that_redraws_its_line_is_read_before_the_line_has_ended(story: Story) -> None:
    pod = await story.pod(0)
    story.prints(pod, "\r 10%|█    | 1/10 [00:01<00:09]\r 20%|██   | 2/10 [00:02<00:08]\r 30%|██")

    assert [("a-worker-0", "log", Report(0.2, 8.0))] == await story.look()


async def test_whoever_leads_is_listened_to_once_it_speaks(story: Story) -> None:
    first, second = await story.pod(0), await story.pod(1)
    story.prints(second, "step 1/10\n")
    assert ["a-worker-1"] == [pod for pod, _, _ in await story.look()]

    story.prints(first, "step 5/10\n")
    story.prints(second, "step 2/10\n")
    assert ["a-worker-0"] == [pod for pod, _, _ in await story.look()]


async def test_event_files_count_more_than_lines_which_still_say_how_far_it_is(story: Story) -> None:
    pod = await story.pod(0)
    folder = places_of(story.settings, pod).volumes / "work" / "runs" / "1"
    folder.mkdir(parents=True)
    (folder / "events.out.tfevents.1.host").write_bytes(event(7, simple("train/loss", 0.5)))
    story.prints(pod, "step 5/10 loss 9\n")

    assert ("a-worker-0", "tensorboard", Report(0.5, None, {"train/loss": 0.5})) == (await story.look())[0]


async def test_the_graph_of_a_model_does_not_end_its_curves(story: Story) -> None:
    folder = places_of(story.settings, await story.pod(0)).volumes / "work"
    folder.mkdir(parents=True)
    graph = record(bytes(2 * readings.MOST_AT_ONCE))
    (folder / "tfevents").write_bytes(event(1, simple("loss", 2.0)) + graph + event(2, simple("loss", 1.0)))

    assert [{"loss": 2.0}, {"loss": 1.0}] == [report.metrics for _ in range(2) for _, _, report in await story.look()]


async def test_a_volume_cannot_stop_the_looks_or_lead_them_elsewhere(story: Story, tmp_path: Path) -> None:
    folder = places_of(story.settings, await story.pod(0)).volumes / "work"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "1.tfevents")
    (tmp_path / "elsewhere").write_bytes(event(7, simple("secret", 1.0)))
    (folder / "2.tfevents").symlink_to(tmp_path / "elsewhere")
    (folder / "3.tfevents").write_bytes(event(7, simple("loss", 0.5)))

    assert [{"loss": 0.5}] == [report.metrics for _, _, report in await story.look()]


async def test_a_volume_full_of_folders_and_files_takes_no_longer(story: Story) -> None:
    folder = places_of(story.settings, await story.pod(0)).volumes / "work"
    for number in range(readings.MOST_FOLDERS + 20):
        (folder / f"{number:03}").mkdir(parents=True)
        (folder / f"{number:03}" / "tfevents").write_bytes(event(7, simple(f"loss-{number}", 0.5)))

    assert readings.MOST_FILES == sum(len(report.metrics) for _, _, report in await story.look())


async def test_what_ended_long_ago_is_not_read_again(story: Story) -> None:
    story.prints(await story.pod(0, state="terminated"), "step 5/10\n")

    assert [] == await story.look()
