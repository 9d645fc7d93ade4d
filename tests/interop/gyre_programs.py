"""Runs gyre's commands, and a run's model on given tokens, for the tests."""

import json
import subprocess
from pathlib import Path

import safetensors.torch

BUILD = Path(__file__).resolve().parents[2] / "build" / "release"


def gyre(*words):
    """Runs a command that must succeed; returns what it prints."""
    done = subprocess.run([BUILD / "apps/gyre/gyre", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def gyre_json(*words):
    return json.loads(gyre(*words, "--json"))


def refusal(*words):
    """Runs a command that must refuse its input with one line; returns this line."""
    done = subprocess.run([BUILD / "apps/gyre/gyre", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def outputs(run, tokens, place, greedy=0):
    """Logits (tokens, vocabulary) of the run's model, and `greedy` further tokens, each the likeliest."""
    out = place / "outputs.safetensors"
    program = BUILD / "tests/interop/gyre_model_outputs"
    done = subprocess.run([program, run, out, str(greedy), *map(str, tokens)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tensors = safetensors.torch.load_file(out)
    return tensors["logits"], tensors["greedy"].tolist()
