"""gyre.optim in the training loops of other frameworks, with the code shown in docs/python.md: after 20 steps the parameters are bit
for bit those of the optimizer alone with the same gradients, and training continues from the framework's checkpoints."""

import copy
import os
import pathlib
import re

import pytest
import torch
import torch.multiprocessing
import transformers
from gyre.optim import BasisRotation

from megatron_on_cpu import megatron

STEPS, HALF = 20, 10
VOCABULARY, LENGTH, BATCH = 64, 16, 8
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


def shown(heading):
    """The code under a heading of docs/python.md."""
    part = DOCS.read_text().split(f"### {heading}\n")[1].split("\n#")[0]
    return "\n".join(re.findall(r"```python\n(.*?)```", part, re.S))


@pytest.fixture
def steps(monkeypatch):
    return recorded_steps(monkeypatch)


def recorded_steps(monkeypatch):
    """The original step function, then a record of each step: optimizer, parameters before it, gradients, settings of the groups."""
    step = BasisRotation.step
    made = [step]

    def recorded(self, closure=None):
        params = [p for group in self.param_groups for p in group["params"]]
        made.append({
            "optimizer": self,
            "before": [p.detach().clone() for p in params],
            "gradients": [None if p.grad is None else p.grad.detach().clone() for p in params],
            "settings": [{k: copy.copy(v) for k, v in group.items() if k != "params"} for group in self.param_groups],
        })
        return step(self, closure)

    monkeypatch.setattr(BasisRotation, "step", recorded)
    return made


def by_itself(steps):
    """The parameters after the same steps without a framework."""
    step, made = steps[0], steps[1:]
    optimizer = made[0]["optimizer"]
    assert all(one["optimizer"] is optimizer for one in made)
    params = [torch.nn.Parameter(before.clone()) for before in made[0]["before"]]
    left = iter(params)
    groups = [{**settings, "params": [next(left) for _ in group["params"]]}
              for group, settings in zip(optimizer.param_groups, made[0]["settings"])]
    alone = BasisRotation(groups)
    for one in made:
        for group, settings in zip(alone.param_groups, one["settings"]):
            group.update(settings)
        for p, gradient in zip(params, one["gradients"]):
            p.grad = None if gradient is None else gradient.clone()
        step(alone)
    return params


def assert_as_by_itself(steps, share=1):
    """share: of the parameters that the optimizer has."""
    optimizer = steps[1]["optimizer"]
    assert len(steps) == 1 + STEPS
    of_framework = [p for group in optimizer.param_groups for p in group["params"]]
    expected = by_itself(steps)
    assert len(expected) > 20 * share
    for ours, alone in zip(of_framework, expected):
        assert torch.equal(ours, alone)
    rotated = [p for p in of_framework if any(key.endswith("basis") for key in optimizer.state[p])]
    assert len(rotated) >= 8 * share, "nothing was rotated"
    assert any(not torch.equal(p, before) for p, before in zip(of_framework, steps[-1]["before"]))


def assert_falls(losses):
    assert len(losses) == STEPS
    assert sum(losses[-3:]) < 0.8 * sum(losses[:3]), losses


def assert_same(model, other):
    for (name, a), b in zip(model.named_parameters(), other.parameters()):
        assert torch.equal(a, b), name


def llama():
    torch.manual_seed(1)
    config = transformers.LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=LENGTH)
    return transformers.LlamaForCausalLM(config)


def texts(count):
    """Sequences that count upwards, so that there is something to learn."""
    begins = torch.randint(VOCABULARY, (count, 1), generator=torch.Generator().manual_seed(2))
    return (begins + torch.arange(LENGTH)) % VOCABULARY


def test_trainer(steps, tmp_path):
    code = shown("Hugging Face's Trainer")
    dataset = [{"input_ids": text, "labels": text} for text in texts(64)]

    def run(resume=None):
        arguments = transformers.TrainingArguments(
            str(tmp_path / "run"), max_steps=STEPS, save_steps=HALF, logging_steps=1, learning_rate=1.0, use_cpu=True,
            per_device_train_batch_size=BATCH, report_to=[], disable_tqdm=True, max_grad_norm=0.5)
        names = {"model": llama(), "dataset": dataset, "arguments": arguments, "resume": resume}
        exec(code, names)
        return names

    whole = run()
    assert_falls([line["loss"] for line in whole["trainer"].state.log_history if "loss" in line])
    assert_as_by_itself(steps)
    rates = [one["settings"][0]["lr"] for one in steps[1:]]
    assert rates == sorted(rates, reverse=True) and rates[-1] < 0.1 * rates[0], "the Trainer's scheduler does not reach the optimizer"
    resumed = run(str(tmp_path / f"run/checkpoint-{HALF}"))
    assert len(steps) == 1 + STEPS + STEPS - HALF
    assert_same(whole["model"], resumed["model"])


def elements(optimizer):
    return sum(x.numel() for state in optimizer.state.values() for x in state.values() if torch.is_tensor(x))


def with_shares(rank, store, saved):
    """One of two processes of test_zero_redundancy."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    batches = [batch[rank::2] for batch in texts(STEPS * BATCH).split(BATCH)]
    code = shown("PyTorch's ZeroRedundancyOptimizer")

    def run(batches, resume=None):
        names = {"model": llama(), "batches": batches, "resume": resume, "losses": []}
        exec(code, names)
        return names

    with pytest.MonkeyPatch.context() as monkeypatch:
        steps = recorded_steps(monkeypatch)
        whole = run(batches)
        assert_falls(whole["losses"])
        assert_as_by_itself(steps, share=0.3)
        model = whole["model"]
        shared = [p.detach().clone() for p in model.parameters()]
        for p in shared:
            torch.distributed.broadcast(p, 0)
        assert all(torch.equal(p, of_0) for p, of_0 in zip(model.parameters(), shared)), "the processes differ"
    groups = [{"params": group["params"], "rotate": group["rotate"]} for group in whole["optimizer"].param_groups]
    undivided = BasisRotation(groups, interval=5)
    undivided.step()  # with the last gradients
    assert elements(steps[1]["optimizer"]) < 0.7 * elements(undivided), "the state is not divided"

    half = run(batches[:HALF])
    if rank == 0:
        torch.save({"model": half["model"].state_dict(), "optimizer": half["optimizer"].state_dict()}, saved)
    torch.distributed.barrier()
    resumed = run(batches[HALF:], torch.load(saved))
    for p, of_whole in zip(resumed["model"].parameters(), shared):
        assert torch.equal(p, of_whole), "after a restart it goes on differently"
    torch.distributed.barrier()
    # Without the end of the interpreter: PyTorch's threads for gloo may still let go of tensors then, and abort the process.
    os._exit(0)


def test_zero_redundancy(tmp_path):
    torch.multiprocessing.spawn(with_shares, (str(tmp_path / "store"), str(tmp_path / "saved.pt")), nprocs=2)


def test_deepspeed(steps, tmp_path, monkeypatch):
    code = shown("DeepSpeed")
    import deepspeed

    for name, value in dict(RANK=0, LOCAL_RANK=0, WORLD_SIZE=1, MASTER_ADDR="127.0.0.1", MASTER_PORT=0).items():
        monkeypatch.setenv(name, str(value))
    # A group of one process, made here so that no port is opened.
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)

    def run(batches, resume=None):
        names = {"model": llama(), "batches": batches, "folder": str(tmp_path), "resume": resume, "losses": []}
        exec(code, names)
        return names

    try:
        batches = list(texts(2 * STEPS * BATCH).split(BATCH))  # two per update
        whole = run(batches)
        assert_falls([sum(pair) / 2 for pair in zip(whole["losses"][::2], whole["losses"][1::2])])
        assert_as_by_itself(steps)
        half = run(batches[: 2 * HALF])
        half["engine"].save_checkpoint(str(tmp_path), tag="half")
        resumed = run(batches[2 * HALF :], resume="half")
        assert len(steps) == 1 + 2 * STEPS
        assert_same(whole["model"], resumed["model"])
    finally:
        torch.distributed.destroy_process_group()


def gpt(dtype):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import TransformerConfig

    torch.manual_seed(1)
    config = TransformerConfig(num_layers=2, hidden_size=32, num_attention_heads=4, use_cpu_initialization=True, hidden_dropout=0,
                               attention_dropout=0, params_dtype=dtype, bf16=dtype == torch.bfloat16, pipeline_dtype=dtype)
    model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=VOCABULARY, max_sequence_length=LENGTH,
                     position_embedding_type="rope")
    return model.to(dtype)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=("fp32", "bf16"))
def test_megatron(steps, dtype, monkeypatch):
    code = shown("Megatron-core")
    monkeypatch.setattr("megatron.core.optimizer.Adam", None)
    mask = torch.ones(1, 1, LENGTH, LENGTH).tril() < 0.5
    positions = torch.arange(LENGTH).view(1, LENGTH)

    def loss_of(model, batch):
        labels = (batch + 1) % VOCABULARY
        return model(batch, positions, mask, labels=labels).float().mean()

    def run(batches, resume=None):
        names = {"model": gpt(dtype), "batches": batches, "loss_of": loss_of, "bf16": dtype == torch.bfloat16, "losses": [],
                 "norms": [], "resume": resume}
        exec(code, names)
        return names

    with megatron():
        batches = list(texts(STEPS * BATCH).split(BATCH))
        whole = run(batches)
        assert_falls(whole["losses"])
        assert min(whole["norms"]) > 0
        assert_as_by_itself(steps)
        masters = [p for group in whole["optimizer"].param_groups for p in group["params"]]
        assert {p.dtype for p in masters} == {torch.float32} and {p.dtype for p in whole["model"].parameters()} == {dtype}
        half = run(batches[:HALF])
        saved = copy.deepcopy({"model": half["model"].state_dict(), "optimizer": half["optimizer"].state_dict()})
        resumed = run(batches[HALF:], saved)
        assert_same(whole["model"], resumed["model"])
        # Megatron's sharded state requires the parameter's shape for every tensor; a basis has another shape.
        with pytest.raises(AssertionError, match="does not match model shape"):
            whole["optimizer"].sharded_state_dict(whole["model"].sharded_state_dict())
