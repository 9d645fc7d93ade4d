"""Runs are repeated from docs/optimizers.md: PyTorch takes the gradients in fp64, at weights as old as PipeDream's stages read them, and
optimizer_formulas.py makes the updates."""

import json
import math

import numpy
import pytest
import safetensors.numpy
import torch

from gyre_programs import gyre
from optimizer_formulas import (AdamW, BasisRotation, DelayCompensated, ErrorFeedback, Muon, NesterovAsync, PipeDreamLr, clip_factor,
                                learning_rate, stream_block)

VOCABULARY, WIDTH, HEADS, CONTEXT, BLOCKS, BATCH, WINDOW, UPDATES = 13, 8, 2, 12, 2, 3, 2, 30
STAGES = 2 * BLOCKS + 2  # one layer each
RATE, EPSILON = 3e-3, 1e-6

CONFIG = f"""
[model]
layers = {BLOCKS}
width = {WIDTH}
heads = {HEADS}
context = {CONTEXT}
bias = false
[data]
tokens = "data"
vocabulary = {VOCABULARY}
[pipeline]
schedule = "pipedream"
stages = {STAGES}
microbatch = {BATCH}
accumulate = {WINDOW}
[optimizer]
kind = "adamw"
lr = {RATE}
epsilon = {EPSILON}
[run]
precision = "fp32"
updates = {UPDATES}
checkpoint_minutes = 0
"""
TOKENS = numpy.cumsum(numpy.random.default_rng(1).integers(0, 4, 4000)) % VOCABULARY


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A configuration with data, and a run of one update, which others begin with."""
    place = tmp_path_factory.mktemp("optimizers")
    (place / "data").mkdir()
    TOKENS.astype("<u2").tofile(place / "data/train.bin")
    TOKENS[:200].astype("<u2").tofile(place / "data/val.bin")
    (place / "config.toml").write_text(CONFIG.replace('"data"', f'"{place}/data"'))
    gyre("train", place / "config.toml", "--out", place / "first", "--set", "run.updates=1")
    return place


def weights_of(run, step):
    tensors = safetensors.numpy.load_file(run / f"checkpoints/step-{step:08d}/model.safetensors")
    return {name: tensor.astype(numpy.float64) for name, tensor in tensors.items()}


def stage_of(name):
    if name.startswith("blocks"):
        return 1 + 2 * int(name.split(".")[1]) + ("mlp" in name or "norm2" in name)
    return 0 if name.startswith("embedding") else STAGES - 1


def version_of(stage, microbatch):
    """The version that its forward reads."""
    return max(0, microbatch - (STAGES - 1 - stage)) // WINDOW


def delay_of(stage, microbatch):
    return microbatch // WINDOW - version_of(stage, microbatch)


def full_delays(stage):
    """Of a window's microbatches, once the pipeline is full."""
    return [delay_of(stage, 100 * WINDOW + i) for i in range(WINDOW)]


def batch(microbatch):
    begins = []
    for sequence in range(BATCH):
        low, high, *_ = stream_block(1, 2, microbatch, sequence, 0)
        begins.append((low + 2**32 * high) % (len(TOKENS) - CONTEXT))
    tokens = torch.tensor(numpy.array([TOKENS[begin:begin + CONTEXT + 1] for begin in begins]))
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(w, tokens, targets):
    def norm(x, name):
        return torch.nn.functional.layer_norm(x, (WIDTH,), w[name])

    def heads(x):
        return x.view(BATCH, CONTEXT, HEADS, WIDTH // HEADS).transpose(1, 2)

    hidden = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)
    x = w["embedding.token.weight"][tokens] + w["embedding.position.weight"]
    for i in range(BLOCKS):
        block = f"blocks.{i}."
        q, k, v = map(heads, (norm(x, block + "norm1.weight") @ w[block + "attention.qkv.weight"].T).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)).masked_fill(hidden, -math.inf)
        read = (scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH)
        x = x + read @ w[block + "attention.projection.weight"].T
        inner = norm(x, block + "norm2.weight") @ w[block + "mlp.in.weight"].T
        x = x + torch.nn.functional.gelu(inner) @ w[block + "mlp.out.weight"].T
    logits = norm(x, "head.norm.weight") @ w["head.output.weight"].T
    return torch.nn.functional.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))


class Stacked:
    """A fused matrix, of which each matrix is treated by itself."""

    def __init__(self, make, weight, count):
        self.parts = [make(part) for part in numpy.split(weight, count)]

    def step(self, g, *rest):
        for part, own in zip(self.parts, numpy.split(g, len(self.parts))):
            part.step(own, *rest)

    @property
    def weight(self):
        return numpy.concatenate([part.weight for part in self.parts])


def optimizer_of(name, weight, plain, rotated):
    if "norm" in name:
        return plain(weight, decay=0, epsilon=EPSILON)
    if rotated is None or not name.startswith("blocks"):
        return plain(weight, epsilon=EPSILON)
    return Stacked(lambda part: rotated(part, stage_of(name)), weight, 3 if "qkv" in name else 1)


def repeated(start, plain, rotated, predicts, clip):
    """Losses, and the last weights."""
    optimizers = {name: optimizer_of(name, weight, plain, rotated) for name, weight in start.items()}
    versions, losses = [start], []
    for t in range(1, UPDATES + 1):
        first = (t - 1) * WINDOW
        mean, gradients = 0, {name: 0 for name in start}
        for microbatch in range(first, first + WINDOW):
            read = {}
            for name in start:
                version = version_of(stage_of(name), microbatch)
                weight = versions[version][name]
                if predicts and version > 0:
                    weight = weight + max(full_delays(stage_of(name))) * (weight - versions[version - 1][name])
                read[name] = torch.tensor(weight, requires_grad=True)
            loss = loss_of(read, *batch(microbatch)) / WINDOW
            loss.backward()
            mean += loss.item()
            for name in start:
                gradients[name] = gradients[name] + read[name].grad.numpy()
        losses.append(mean)
        rate = learning_rate(t, UPDATES, RATE, warmup=4)
        for stage in range(STAGES):
            names = [name for name in start if stage_of(name) == stage]
            factor = clip_factor([gradients[name] for name in names], clip)
            for name in names:
                optimizers[name].step(factor * gradients[name], t, rate, delay_of(stage, first))
        versions.append({name: optimizer.weight for name, optimizer in optimizers.items()})
    return losses, versions[-1]


def usual(weight, **adam):
    return AdamW(weight, betas=(0.9, 0.99), **adam)


def rotation(weight, stage):
    return BasisRotation(weight, epsilon=EPSILON, interval=5)


def stage_aware(weight, stage):
    means = [sum(full_delays(stage)) / WINDOW for stage in range(STAGES)]
    mean = sum(means) / STAGES
    interval = max(1, math.floor(5 * mean / max(means[stage], min(1, mean) / 2) + 0.5))
    return BasisRotation(weight, epsilon=EPSILON, interval=(5, interval))


CASES = {
    "adamw": dict(),
    "nesterov-async": dict(plain=lambda weight, **adam: NesterovAsync(weight, betas=(0.99, 0.999), **adam)),
    "pipedream-lr": dict(plain=lambda weight, **adam: PipeDreamLr(weight, 20, **adam), sets=["delay_warmup=20"]),
    "prediction": dict(predicts=True),
    "delay-compensated": dict(plain=lambda weight, **adam: DelayCompensated(weight, 5, **adam), sets=["delay-compensated.lambda=5"]),
    "error-feedback": dict(plain=ErrorFeedback),
    "muon": dict(rotated=lambda weight, stage: Muon(weight)),
    "basis-rotation": dict(plain=usual, rotated=rotation, sets=["basis-rotation.interval=5"]),
    "basis-rotation stage-aware": dict(plain=usual, rotated=stage_aware,
                                       sets=["basis-rotation.interval=5", "basis-rotation.refresh=\"stage-aware\""]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_repeated_from_the_formulas(place, name):
    case = dict(CASES[name])
    sets = [f"kind=\"{name.split()[0]}\"", "warmup=4", "clip=0.5", *case.pop("sets", [])]
    run = place / name.replace(" ", "-")
    gyre("train", place / "config.toml", "--out", run, "--set", f"run.init_from={place}/first",
         *(word for key in sets for word in ("--set", f"optimizer.{key}")))
    start, end = weights_of(place / "first", 1), weights_of(run, UPDATES)
    losses, weights = repeated(start, **{"plain": AdamW, "rotated": None, "predicts": False, "clip": 0.5, **case})

    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    assert [line["loss"] for line in lines if line["event"] == "step"] == pytest.approx(losses, abs=1e-5)
    off, moved = (math.sqrt(sum(((end[key] - other[key]) ** 2).sum() for key in end)) for other in (weights, start))
    assert off < 1e-4 * moved
