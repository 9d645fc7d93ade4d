"""Models of llm.c, written and read as its train_gpt2.py and train_gpt2.cu do, compared with transformers' GPT-2."""

import pytest
import torch
import transformers

from gyre_programs import gyre, gyre_json, outputs, refusal

VOCABULARY, CONTEXT, BLOCKS, WIDTH = 200, 64, 3, 48
PADDED = 256
BLOCK_TENSORS = [
    "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
    "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias",
]  # fmt: skip


def random_gpt2():
    torch.manual_seed(3)
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_layer=BLOCKS, n_embd=WIDTH, n_head=4, n_positions=CONTEXT)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def names():
    """transformers' names in the file's order."""
    blocks = [f"transformer.h.{block}.{tensor}" for tensor in BLOCK_TENSORS for block in range(BLOCKS)]
    return ["transformer.wte.weight", "transformer.wpe.weight", *blocks, "transformer.ln_f.weight", "transformer.ln_f.bias"]


def is_transposed(name):
    """transformers stores the matrices of blocks as (in, out), llm.c as (out, in)."""
    return "weight" in name and ".h." in name and "ln_" not in name


def in_file(model, name):
    tensor = model.state_dict()[name]
    if name == "transformer.wte.weight":
        tensor = torch.nn.functional.pad(tensor, (0, 0, 0, PADDED - VOCABULARY))
    return tensor.t() if is_transposed(name) else tensor


def write(model, path, dtype):
    header = torch.zeros(256, dtype=torch.int32)
    version = 3 if dtype == torch.float32 else 5
    header[:8] = torch.tensor([20240326, version, CONTEXT, VOCABULARY, BLOCKS, 4, WIDTH, PADDED])
    with open(path, "wb") as file:
        file.write(header.numpy().tobytes())
        for name in names():
            file.write(in_file(model, name).contiguous().to(dtype).view(torch.uint8).numpy().tobytes())


@pytest.mark.parametrize("dtype, word", [(torch.float32, "fp32"), (torch.bfloat16, "bf16")])
def test_a_model_comes_and_goes(dtype, word, tmp_path):
    model = random_gpt2()
    write(model, tmp_path / "gpt2.bin", dtype)
    assert gyre_json("import", tmp_path / "gpt2.bin", "--out", tmp_path / "run")["vocabulary"] == VOCABULARY
    tokens = [(i * i * 7 + 3 * i + 1) % VOCABULARY for i in range(CONTEXT)]
    logits, _ = outputs(tmp_path / "run", tokens, tmp_path)
    rounded = model.to(dtype).to(torch.float32)
    with torch.no_grad():
        expected = rounded(input_ids=torch.tensor([tokens])).logits[0]
    assert expected.std() > 0.1
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-4)

    gyre("export", tmp_path / "run", "--format", "llm.c", "--dtype", word, "--out", tmp_path / "back")
    assert (tmp_path / "back/model.bin").read_bytes() == (tmp_path / "gpt2.bin").read_bytes()


def test_llm_c_gets_a_model_of_transformers(tmp_path):
    model = random_gpt2()
    model.save_pretrained(tmp_path / "theirs")
    gyre("import", tmp_path / "theirs", "--out", tmp_path / "run")
    gyre("export", tmp_path / "run", "--format", "llm.c", "--out", tmp_path / "back")
    write(model, tmp_path / "gpt2.bin", torch.float32)
    assert (tmp_path / "back/model.bin").read_bytes() == (tmp_path / "gpt2.bin").read_bytes()


def test_a_part_of_a_file_is_refused(tmp_path):
    write(random_gpt2(), tmp_path / "gpt2.bin", torch.float32)
    whole = (tmp_path / "gpt2.bin").read_bytes()
    (tmp_path / "gpt2.bin").write_bytes(whole[:-100])
    assert "is truncated" in refusal("import", tmp_path / "gpt2.bin", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()
