"""Token files written by the formats' own programs: Megatron's builder, and numpy for the formats that are one array."""

import json

import numpy
import pytest
import torch
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

from gyre_programs import gyre, refusal

VOCABULARY = 300
CONFIG = """
[model]
layers = 2
width = 16
heads = 2
context = 16
[data]
tokens = "{tokens}"
vocabulary = {vocabulary}
[pipeline]
stages = 2
microbatch = 2
[run]
updates = 12
eval_every = 6
checkpoint_minutes = 0
"""


def documents():
    draw = numpy.random.default_rng(5)
    return [draw.integers(0, VOCABULARY, size) for size in draw.integers(3, 90, 120)]


def write_megatron(prefix, texts, dtype):
    builder = IndexedDatasetBuilder(str(prefix) + ".bin", dtype=dtype)
    for text in texts:
        # A document has two sequences if it is long enough.
        half = len(text) // 2
        builder.add_document(torch.from_numpy(text.astype(numpy.int64)), [half, len(text) - half])
    builder.finalize(str(prefix) + ".idx")


def write_llmc(path, tokens):
    header = numpy.zeros(256, numpy.int32)
    header[:3] = 20240520, 1, len(tokens)
    path.write_bytes(header.tobytes() + tokens.astype(numpy.uint16).tobytes())


def losses(directory, tokens, vocabulary=VOCABULARY):
    (directory / "run.toml").write_text(CONFIG.format(tokens=tokens, vocabulary=vocabulary))
    run = directory / ("run-" + tokens.name)
    gyre("train", directory / "run.toml", "--out", run)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    told = [line for line in lines if line["event"] in ("step", "eval")]
    found = [(line["event"], line["step"], line.get("loss", line.get("val_loss"))) for line in told]
    assert len(found) == 14
    return found


@pytest.mark.parametrize("dtype", [numpy.uint16, numpy.int32, numpy.int64])
def test_megatrons_own_files_give_the_losses_of_llm_c_and_nanogpt(tmp_path, dtype):
    texts = documents()
    tokens = numpy.concatenate(texts)
    write_megatron(tmp_path / "text_document", texts, dtype)
    write_llmc(tmp_path / "shard.bin", tokens)
    (tmp_path / "nano").mkdir()
    tokens.astype(numpy.uint16).tofile(tmp_path / "nano" / "train.bin")
    megatron = losses(tmp_path, tmp_path / "text_document")
    assert megatron == losses(tmp_path, tmp_path / "shard.bin")
    assert megatron == losses(tmp_path, tmp_path / "nano")


def test_a_megatron_file_that_is_cut_short_is_refused(tmp_path):
    write_megatron(tmp_path / "text_document", documents(), numpy.uint16)
    whole = (tmp_path / "text_document.bin").read_bytes()
    (tmp_path / "text_document.bin").write_bytes(whole[:-2])
    (tmp_path / "run.toml").write_text(CONFIG.format(tokens=tmp_path / "text_document", vocabulary=VOCABULARY))
    assert "text_document" in refusal("train", tmp_path / "run.toml", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()
