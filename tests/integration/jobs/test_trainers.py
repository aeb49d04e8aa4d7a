"""Programs of trainers' users, without a line of Lockstep's, end with the bits of a calm run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.one_rank import Pod
from tools.frameworks.build import directory, installed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

TRANSFORMERS = """
import hashlib, torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
torch.manual_seed(3)
class Words(torch.utils.data.Dataset):
    def __init__(self, count):
        draw = torch.Generator().manual_seed(count)
        self.x = torch.randint(0, 64, (count, 16), generator=draw)
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return {"input_ids": self.x[i], "labels": self.x[i]}
model = GPT2LMHeadModel(
    GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2)
)
wish = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=8, gradient_accumulation_steps=2,
    logging_steps=10, save_steps=20, save_total_limit=2, report_to=[], eval_strategy="steps",
    eval_steps=20, warmup_steps=5, disable_tqdm=True, use_cpu=True, learning_rate=1e-3,
)
trainer = Trainer(model, wish, train_dataset=Words(300), eval_dataset=Words(40))
trainer.train()
rest = [one.get("loss", one.get("eval_loss")) for one in trainer.state.log_history]
"""

LIGHTNING = """
import hashlib, torch, lightning
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
lightning.seed_everything(4)
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(20, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 5)
        )
    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def validation_step(self, batch, index):
        self.log("found", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.8)]
draw = torch.Generator().manual_seed(5)
data = TensorDataset(
    torch.randn(400, 20, generator=draw), torch.randint(0, 5, (400,), generator=draw)
)
model = Model()
best = lightning.pytorch.callbacks.ModelCheckpoint(monitor="found", save_top_k=2)
trainer = lightning.Trainer(
    max_epochs=4, accelerator="cpu", logger=False, enable_progress_bar=False, callbacks=[best]
)
trainer.fit(model, DataLoader(data, 32, shuffle=True), DataLoader(data, 100))
rest = [trainer.global_step, best.best_model_score.item()]
"""

ACCELERATE = """
import hashlib, torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
set_seed(4)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
draw = torch.Generator().manual_seed(5)
data = TensorDataset(
    torch.randn(400, 20, generator=draw), torch.randint(0, 5, (400,), generator=draw)
)
model = nn.Sequential(nn.Linear(20, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
model, optimizer, loader, schedule = accelerator.prepare(
    model, optimizer, DataLoader(data, 16, shuffle=True), schedule
)
rest = []
for epoch in range(5):
    total = 0
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step(); schedule.step(); optimizer.zero_grad()
            total += loss.detach()
    rest.append((total.item(), schedule.get_last_lr()))
"""
END = """
bits = b"".join(one.detach().numpy().tobytes() for one in model.parameters())
print("ends with", hashlib.sha256(bits).hexdigest(), rest)
"""
PROGRAMS = {"transformers": TRANSFORMERS, "lightning": LIGHTNING, "accelerate": ACCELERATE}


@pytest.mark.parametrize("trainer", PROGRAMS)
def test_a_killed_trainer_ends_as_without_a_fault(tmp_path: Path, trainer: str) -> None:
    if not installed("trainers"):
        pytest.skip("needs trainers (make frameworks)")
    python = str(directory("trainers") / "bin" / "python")
    calm = Pod(tmp_path / "calm", PROGRAMS[trainer] + END, python)
    code, wanted, said = calm.live(LOCKSTEP_CAPTURE="off")
    assert code == 0, said
    lost = Pod(tmp_path / "lost", PROGRAMS[trainer] + END, python)
    assert lost.live(kill_at=31)[0] == -9
    code, found, said = lost.live()
    assert code == 0, said
    assert "goes on from there" in said
    assert re.findall("ends with .*", found) == re.findall("ends with .*", wanted) != []
