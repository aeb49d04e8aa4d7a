"""Jobs from Python: a function or a script runs on the cluster; wait, read its logs, scale, cancel.

``TrainerClient`` blocks, ``AsyncTrainerClient`` is for asyncio; both have the same methods, whose
names are those of Kubeflow's ``TrainerClient`` where they do the same.

    from lockstep.sdk import Trainer, TrainerClient

    def train(steps: int) -> None:
        print("trained", steps)

    with TrainerClient() as client:
        name = client.train(Trainer(func=train, func_args={"steps": 3}, num_nodes=2))
        client.wait_for_job_status(name)
        print(client.get_job_logs(name))
"""

from lockstep.sdk.client import AsyncTrainerClient, JobFailed, TrainerClient
from lockstep.sdk.trainer import BadTrainer, Trainer

__all__ = ["AsyncTrainerClient", "BadTrainer", "JobFailed", "Trainer", "TrainerClient"]
