"""Run a function on two nodes, wait for it, and print what they wrote."""

from lockstep.sdk import Trainer, TrainerClient


def work(word: str) -> None:
    """Say where it runs."""
    import os

    print(word, "from", os.environ["LOCKSTEP_INDEX"])


if __name__ == "__main__":
    with TrainerClient() as client:
        name = client.train(
            Trainer(func=work, func_args={"word": "hello"}, framework="plain", num_nodes=2)
        )
        client.wait_for_job_status(name)
        for pod, text in client.get_job_logs(name).items():
            print(pod, text, sep=": ", end="")
