"""One run by the local back end of Kubeflow's SDK, as it is: it makes a virtual environment, then runs the function.

With plain Python in that environment: its own runtime would install torch with all of CUDA for every run, and measure
a download. It runs one process.
"""

from kubeflow.trainer import CustomTrainer, TrainerClient  # type: ignore[import-not-found]  # in the peers' environment
from kubeflow.trainer.backends.localprocess.types import (  # type: ignore[import-not-found]  # as above
    LocalProcessBackendConfig,
)


def hello() -> None:
    """What `hello.py` does."""
    import time

    print("first line", time.time(), flush=True)
    print("last line", time.time(), flush=True)


if __name__ == "__main__":
    client = TrainerClient(backend_config=LocalProcessBackendConfig())
    runtime = client.get_runtime("torch-distributed")
    runtime.trainer.framework = "python"
    name = client.train(runtime=runtime, trainer=CustomTrainer(func=hello))
    for line in client.get_job_logs(name, follow=True):
        print(line)
