#!/usr/bin/env python3
"""The model of bench/tiny20 as a plain PyTorch loop: in bf16 by autocast or in fp32, AdamW, clipping.

Usage: pytorch.py LAYERS WIDTH HEADS CONTEXT VOCABULARY MICROBATCH DEVICE bf16|fp32 plain|compiled. Compiled, the model goes through torch.compile,
which needs a C++ compiler on a CPU and Triton on a GPU, and AdamW is fused. Prints its version when it is ready. Then, for every line
"MICROBATCHES_OF_AN_UPDATE MICROBATCHES" on standard input, trains for that many microbatches and prints the seconds.
"""
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(0)  # prints no version, by which tiny20 notices
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.into, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("hidden", torch.ones(context, context, dtype=torch.bool).triu(1))

    def attend(self, x):
        batch, context, width = x.shape
        q, k, v = (y.view(batch, context, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(width, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) * (q.shape[3] ** -0.5)
            y = F.softmax(scores.masked_fill(self.hidden, float("-inf")), -1) @ v
        return self.projection(y.transpose(1, 2).reshape(batch, context, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.out(F.gelu(self.into(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, context, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads, context) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    layers, width, heads, context, vocabulary, microbatch = map(int, sys.argv[1:7])
    device = torch.device(sys.argv[7])
    on_gpu, bf16, compiled = device.type != "cpu", sys.argv[8] == "bf16", sys.argv[9] == "compiled"
    torch.manual_seed(1)
    model = Gpt(layers, width, heads, context, vocabulary).to(device)
    fused = {"fused": True} if compiled else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.99), weight_decay=0.1, **fused)
    run = torch.compile(model) if compiled else model

    def finish():
        if on_gpu:
            torch.cuda.synchronize(device)

    def update(accumulate):
        for _ in range(accumulate):
            tokens = torch.randint(vocabulary, (microbatch, context + 1)).to(device)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16):
                loss = run(tokens[:, :-1], tokens[:, 1:])
            (loss / accumulate).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    how = ", compiled" if compiled else ""
    try:
        update(1)
    except Exception as error:  # torch.compile finds no compiler
        if not compiled:
            raise
        how, run = f", not compiled ({type(error).__name__})", model
        optimizer.zero_grad(set_to_none=True)
        update(1)
    finish()
    print(f"PyTorch {torch.__version__}{'' if on_gpu else f', {torch.get_num_threads()} threads'}{how}", flush=True)
    for line in sys.stdin:
        accumulate, microbatches = map(int, line.split())
        started = time.perf_counter()
        for _ in range(microbatches // accumulate):
            update(accumulate)
        finish()
        print(time.perf_counter() - started, flush=True)


main()
