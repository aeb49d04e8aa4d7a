"""A training program as anybody writes it, without a line of Lockstep's; DIE kills it at a step."""

from __future__ import annotations

PLAIN = """
import hashlib, os, random, signal, sys
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

HIDDEN = "HIDDEN" in os.environ
generator = torch.Generator().manual_seed(11)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(20, 32), nn.BatchNorm1d(32), nn.Dropout(0.3)
        self.last = nn.Linear(32, 4)
    def forward(self, x):
        if HIDDEN:
            # Drawn from a generator that nobody outside can find.
            x = x + torch.randn(x.shape, generator=generator)
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))))

torch.set_num_threads(1)
distributed = "RANK" in os.environ
if distributed:
    torch.distributed.init_process_group("gloo")
torch.manual_seed(1 + int(os.environ.get('RANK', 0)))
draw = torch.Generator().manual_seed(5)
data = TensorDataset(torch.randn(240, 20, generator=draw), torch.randint(4, (240,), generator=draw))
sampler = DistributedSampler(data, seed=3) if distributed else None
train = DataLoader(data, batch_size=16, shuffle=sampler is None, sampler=sampler)
test = DataLoader(data, batch_size=100)
model = Net()
wrapped = nn.parallel.DistributedDataParallel(model) if distributed else model
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = StepLR(optimizer, step_size=1, gamma=0.7)
total, best, step = torch.zeros(()), 1e9, 0
print("begins", flush=True)
for epoch in range(4):
    wrapped.train()
    if sampler is not None:
        sampler.set_epoch(epoch)
    for index, (x, y) in enumerate(train):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(wrapped(x), y)
        loss.backward()
        optimizer.step()
        step += 1
        total += loss.detach()
        print(f"step {step} loss {loss.item():.6f}", flush=True)
        if os.environ.get("DIE") == f"{step}" and not os.path.exists(os.environ["DIED"]):
            open(os.environ["DIED"], "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    model.eval()
    with torch.no_grad():
        now = sum(nn.functional.cross_entropy(model(x), y).item() for x, y in test)
    if now < best:
        best = now
        torch.save(model.state_dict(), f"{os.environ['OUT']}/best-{os.environ.get('RANK', 0)}.pt")
    schedule.step()
bits = b"".join(one.numpy().tobytes() for one in model.state_dict().values())
kept = hashlib.sha256(bits + torch.get_rng_state().numpy().tobytes()).hexdigest()
rest = f"{total.item()} {best} {schedule.get_last_lr()} {random.random()}"
print(f"ends with {kept} {rest}", flush=True)
"""
