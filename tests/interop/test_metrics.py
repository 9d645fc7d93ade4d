"""A run's numbers as read by TensorBoard's EventAccumulator and Prometheus' parser, also after a kill and a resume."""

import json
import os
import signal
import subprocess
import time

import numpy
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gyre_programs import BUILD, gyre

CONFIG = """
[model]
layers = 2
width = 16
heads = 2
context = 16
[data]
tokens = "tokens"
[pipeline]
schedule = "pipedream"
stages = 2
microbatch = 2
[optimizer]
ema_decay = 0.99
[run]
updates = {updates}
eval_every = 10
checkpoint_every = 20
tensorboard = true
prometheus = "gyre.prom"
"""
TAGS = {
    "step": {"loss": "train/loss", "lr": "train/learning_rate", "grad_norm": "train/gradient_norm",
             "tokens": "train/tokens", "tokens_per_second": "train/tokens_per_second"},
    "eval": {"val_loss": "validation/loss", "ema_val_loss": "validation/ema_loss"},
    "segment": {"bubbles": "bubble/worker", "delays": "delay/stage",
                "peak_tensor_bytes": "memory/peak_tensors_of_process",
                "peak_resident_bytes": "memory/peak_resident_of_process"},
    "checkpoint": {"wait_seconds": "checkpoint/wait_seconds", "write_seconds": "checkpoint/write_seconds"},
}


def scalars_of_metrics(run):
    """(tag, step) -> value; each must occur once."""
    scalars = {}
    for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()):
        for field, tag in TAGS.get(line["event"], {}).items():
            values = line[field]
            named = {f"{tag}_{i}": v for i, v in enumerate(values)} if isinstance(values, list) else {tag: values}
            for name, value in named.items():
                assert (name, line["step"]) not in scalars
                scalars[name, line["step"]] = numpy.float32(value)
    return scalars


def scalars_of_events(events):
    found = [((tag, event.step), numpy.float32(event.value)) for tag in events.Tags()["scalars"] for event in events.Scalars(tag)]
    assert len(dict(found)) == len(found), "a scalar is there twice"
    return dict(found)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"verse {i} of {i * 7919 % 1000}\n" for i in range(2000)))
    gyre("prepare", tmp_path / "text.txt", "--out", tmp_path / "tokens")
    return tmp_path


def killed_run(place):
    """A run of many updates, killed between two checkpoints."""
    (place / "run.toml").write_text(CONFIG.format(updates=100_000))
    process = subprocess.Popen([BUILD / "apps/gyre/gyre", "train", "run.toml", "--out", "run"], cwd=place,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    metrics = place / "run/metrics.jsonl"
    end = time.monotonic() + 60
    while not (metrics.exists() and '"event":"step","step":70,' in metrics.read_text()):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return place / "run"


def test_tensorboard_reads_every_scalar_once_after_a_kill_and_a_resume(place):
    run = killed_run(place)
    watching = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    steps = [event.step for event in watching.Scalars("train/loss")]
    assert steps == list(range(1, len(steps) + 1)) and len(steps) >= 70

    reached = len(steps)
    gyre("train", "--resume", run, "--set", f"run.updates={reached + 55}")
    expected = scalars_of_metrics(run)
    assert ("train/loss", reached + 55) in expected and ("bubble/worker_1", reached + 55) in expected
    fresh = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    assert scalars_of_events(fresh) == expected
    times = [event.wall_time for event in fresh.Scalars("train/loss")]
    assert times == sorted(times) and time.time() - 600 < times[0] and times[-1] <= time.time()
    # A reader that was watching drops the updates that were repeated.
    assert scalars_of_events(watching.Reload()) == expected


def test_prometheus_reads_the_latest_numbers(place):
    run = killed_run(place)
    read = lambda: {(sample.name, *sorted(sample.labels.items())): sample.value
                    for family in text_string_to_metric_families((place / "gyre.prom").read_text())
                    for sample in family.samples}
    name = ("run", str(run))
    assert read()["gyre_running", name] == 1
    gyre("train", "--resume", run, "--set", "run.updates=200")
    samples, scalars = read(), scalars_of_metrics(run)
    assert samples["gyre_step", name] == samples["gyre_updates", name] == samples["gyre_checkpoint_step", name] == 200
    assert samples["gyre_running", name] == 0
    assert numpy.float32(samples["gyre_loss", name]) == scalars["train/loss", 200]
    assert numpy.float32(samples["gyre_validation_loss", name]) == scalars["validation/loss", 200]
    assert numpy.float32(samples["gyre_delay_updates", name, ("stage", "0")]) == scalars["delay/stage_0", 200]
