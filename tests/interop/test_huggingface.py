"""Models imported from transformers and exported back, compared with transformers' own classes."""

import copy
import json
import math
import tomllib

import pytest
import safetensors
import safetensors.torch
import torch
import transformers

from gyre_programs import gyre, gyre_json, outputs, refusal
from qwen3 import Qwen3

VOCABULARY, CONTEXT = 256, 64
SIZES = dict(vocab_size=VOCABULARY, num_hidden_layers=3, hidden_size=48, num_attention_heads=6)
LLAMA = dict(SIZES, num_key_value_heads=2, intermediate_size=80, max_position_embeddings=CONTEXT, rope_theta=500.0)
# As in Llama 3.1, but for a shorter context, so that some pairs turn as before, some slower, and some between.
STRETCHED = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)

QWEN3 = dict(LLAMA, head_dim=10)
BERT = dict(SIZES, intermediate_size=80, max_position_embeddings=CONTEXT)
GPT2 = dict(vocab_size=VOCABULARY, n_layer=3, n_embd=48, n_head=4, n_positions=CONTEXT)

# Configurations of every family, by name. The embeddings of GPT-2 and BERT are tied unless they say otherwise.
MODELS = {
    "gpt2 tied": (transformers.GPT2LMHeadModel, transformers.GPT2Config(**GPT2)),
    "llama tied": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**LLAMA, tie_word_embeddings=True)),
    "qwen2 tied": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**LLAMA, tie_word_embeddings=True)),
    "qwen3": (Qwen3, transformers.LlamaConfig(**QWEN3)),
    "qwen3 tied": (Qwen3, transformers.LlamaConfig(**QWEN3, tie_word_embeddings=True)),
    "bert tied": (transformers.BertForMaskedLM, transformers.BertConfig(**BERT)),
    "gpt2": (
        transformers.GPT2LMHeadModel,
        transformers.GPT2Config(**GPT2, tie_word_embeddings=False),
    ),
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**LLAMA, rms_norm_eps=1e-5)),
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**LLAMA)),
    "llama, stretched": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**LLAMA, rope_scaling=STRETCHED)),
    "llama, stretched evenly": (
        transformers.LlamaForCausalLM,
        transformers.LlamaConfig(**LLAMA, rope_scaling=dict(rope_type="linear", factor=4.0)),
    ),
    "mistral": (
        transformers.MistralForCausalLM,
        transformers.MistralConfig(**LLAMA, head_dim=12, sliding_window=None),
    ),
    # Sequences that fit the window do not need it.
    "mistral in a window": (
        transformers.MistralForCausalLM,
        transformers.MistralConfig(**{**LLAMA, "max_position_embeddings": 4 * CONTEXT}, head_dim=8, sliding_window=CONTEXT),
    ),
    "qwen2 in a window": (
        transformers.Qwen2ForCausalLM,
        transformers.Qwen2Config(
            **{**LLAMA, "max_position_embeddings": 4 * CONTEXT},
            use_sliding_window=True,
            sliding_window=CONTEXT,
            max_window_layers=1,
        ),
    ),
    "bert": (
        transformers.BertForMaskedLM,
        transformers.BertConfig(**BERT, tie_word_embeddings=False),
    ),
    "bert with two heads": (
        transformers.BertForPreTraining,
        transformers.BertConfig(**BERT, hidden_act="gelu_new", tie_word_embeddings=False),
    ),
}
DECODERS = [name for name in MODELS if not name.startswith("bert")]


def random_model(name):
    """A model whose weights, norms and biases all differ from their initial values."""
    kind, config = MODELS[name]
    torch.manual_seed(3)
    model = kind(copy.deepcopy(config)).eval()  # a model may change its configuration
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def auto_class(name):
    return MODELS[name][0] if name.startswith(("bert", "qwen3")) else transformers.AutoModelForCausalLM


def load(directory, kind=transformers.AutoModelForCausalLM):
    """Loads a model; nothing may be missing, unexpected or of another shape."""
    model, loading = kind.from_pretrained(directory, output_loading_info=True)
    assert not any(loading.values()), loading
    return model.eval()


def stored_tensors(directory):
    """Name -> (type, shape, bytes) of all tensors of a directory; all files must have the metadata of transformers."""
    tensors = {}
    for path in sorted(directory.glob("*.safetensors")):
        with safetensors.safe_open(path, "pt") as file:
            assert file.metadata() == {"format": "pt"}
            for name in file.keys():
                tensor = file.get_tensor(name)
                tensors[name] = (tensor.dtype, tuple(tensor.shape), tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return tensors


def some_tokens(count):
    return [(i * i * 7 + 3 * i + 1) % VOCABULARY for i in range(count)]


def middle(count):
    """Where the separator between the two segments is, of `count` tokens."""
    return 1 + (count - 3) // 2


def logits_of(model, tokens):
    # The segments of a BERT of gyre: the first ends with a separator in the middle.
    types = (torch.arange(len(tokens)) > middle(len(tokens))).long()
    words = {"token_type_ids": types[None]} if model.config.model_type == "bert" else {}
    with torch.no_grad():
        result = model(input_ids=torch.tensor([tokens]), **words)
    return (result.prediction_logits if "prediction_logits" in result else result.logits)[0]


def greedy_tokens(model, tokens, count):
    """Greedy decoding. generate() would need parts of torch.distributed that not every PyTorch loads."""
    for _ in range(count):
        tokens = tokens + [int(logits_of(model, tokens)[-1].argmax())]
    return tokens[-count:]


@pytest.mark.parametrize("name", MODELS)
def test_an_imported_model_computes_the_same(name, tmp_path):
    model = random_model(name)
    model.save_pretrained(tmp_path / "theirs")
    gyre("import", tmp_path / "theirs", "--out", tmp_path / "run")
    tokens = some_tokens(CONTEXT)
    tokens[middle(CONTEXT)] = VOCABULARY - 2
    logits, _ = outputs(tmp_path / "run", tokens, tmp_path)
    expected = logits_of(model, tokens)
    assert expected.std() > 0.1
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", DECODERS)
def test_an_imported_model_writes_the_same(name, tmp_path):
    model = random_model(name)
    model.save_pretrained(tmp_path / "theirs")
    gyre("import", tmp_path / "theirs", "--out", tmp_path / "run")
    prompt = some_tokens(10)
    assert outputs(tmp_path / "run", prompt, tmp_path, greedy=50)[1] == greedy_tokens(model, prompt, 50)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_export_gives_an_imported_models_bytes_back(name, dtype, tmp_path):
    random_model(name).to(dtype).save_pretrained(tmp_path / "theirs", max_shard_size="60KB" if dtype == torch.bfloat16 else "5GB")
    gyre("import", tmp_path / "theirs", "--out", tmp_path / "run")
    gyre("export", tmp_path / "run", "--out", tmp_path / "ours", "--shard-size", "50KB" if dtype == torch.float16 else "5GB")
    theirs, ours = stored_tensors(tmp_path / "theirs"), stored_tensors(tmp_path / "ours")
    for tensor in theirs:
        assert ours[tensor] == theirs[tensor], tensor
    assert set(ours) - set(theirs) <= {"cls.predictions.decoder.bias"}
    again = load(tmp_path / "ours", auto_class(name))
    for key, value in load(tmp_path / "theirs", auto_class(name)).state_dict().items():
        assert again.state_dict()[key].equal(value), key
    config = json.loads((tmp_path / "ours/config.json").read_text())
    assert config["tie_word_embeddings"] is name.endswith("tied")
    assert config["torch_dtype"] == str(dtype).removeprefix("torch.")


def test_a_tied_head_that_is_another_matrix_is_refused(tmp_path):
    """transformers would silently use the embedding."""
    random_model("llama").save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs/config.json"
    path.write_text(path.read_text().replace('"tie_word_embeddings": false', '"tie_word_embeddings": true'))
    assert "'lm_head.weight' differs from the matrix" in refusal("import", tmp_path / "theirs", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_shards_are_read_and_written(tmp_path):
    random_model("llama").save_pretrained(tmp_path / "theirs", max_shard_size="100KB")
    assert len(list((tmp_path / "theirs").glob("model-*.safetensors"))) > 2
    gyre("import", tmp_path / "theirs", "--out", tmp_path / "run")
    printed = gyre_json("export", tmp_path / "run", "--out", tmp_path / "ours", "--shard-size", "100KB")
    shards = sorted((tmp_path / "ours").glob("model-*.safetensors"))
    assert printed["files"] == len(shards) > 2
    for shard in shards:
        tensors = safetensors.torch.load_file(shard)
        assert len(tensors) == 1 or sum(tensor.numel() * 4 for tensor in tensors.values()) <= 100_000
    index = json.loads((tmp_path / "ours/model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(len(data) for _, _, data in stored_tensors(tmp_path / "ours").values())
    load(tmp_path / "ours")


@pytest.mark.parametrize("word, dtype", [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_a_type_can_be_asked_for(word, dtype, tmp_path):
    model = random_model("llama")
    model.save_pretrained(tmp_path / "theirs")
    gyre("import", tmp_path / "theirs", "--out", tmp_path / "run")
    gyre("export", tmp_path / "run", "--out", tmp_path / "ours", "--dtype", word)
    for name, value in model.to(dtype).state_dict().items():
        stored = safetensors.torch.load_file(tmp_path / "ours/model.safetensors")[name]
        assert stored.dtype == dtype and stored.equal(value), name


def test_an_imported_tokenizer_writes_text_and_goes_back(tmp_path):
    from tokenizers import ByteLevelBPETokenizer

    torch.manual_seed(3)
    words = ByteLevelBPETokenizer()
    words.train_from_iterator(["and the waters were upon the hills"] * 9, vocab_size=290, special_tokens=["<|endoftext|>"])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words._tokenizer, eos_token="<|endoftext|>")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**dict(GPT2, vocab_size=320))).eval()  # padded
    model.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    printed = gyre_json("import", tmp_path / "theirs", "--out", tmp_path / "run")
    assert printed["tokenizer"] == "json" and printed["tokenizer_fault"] == ""
    assert printed["tokenizer_files"] == ["tokenizer.json"] and printed["tokenizer_vocabulary"] == len(tokenizer)
    assert (printed["end_of_document_text"], printed["end_of_document_id"]) == (tokenizer.eos_token, tokenizer.eos_token_id)

    prompt = "and the waters"
    written = gyre_json("generate", tmp_path / "run", "--prompt", prompt, "--tokens", 20, "--temperature", 0)["text"]
    tokens = tokenizer(prompt)["input_ids"]
    expected = []
    for _ in range(20):
        with torch.no_grad():
            logits = model(torch.tensor([tokens + expected])).logits[0, -1, :290]
        if int(logits.argmax()) == tokenizer.eos_token_id:
            break
        expected.append(int(logits.argmax()))
    assert expected and written in (tokenizer.decode(expected), prompt + tokenizer.decode(expected))

    gyre("export", tmp_path / "run", "--out", tmp_path / "ours")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")(prompt)["input_ids"] == tokens


def test_a_bare_models_names_and_buffers_are_understood(tmp_path):
    """As in the original GPT-2: names without the prefix, and the causal mask among the tensors."""
    model = random_model("gpt2")
    model.save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs/model.safetensors"
    tensors = {name.removeprefix("transformer."): value for name, value in safetensors.torch.load_file(path).items()}
    tensors["h.0.attn.bias"] = torch.ones(1, 1, CONTEXT, CONTEXT)
    tensors["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    safetensors.torch.save_file(tensors, path)
    printed = gyre_json("import", tmp_path / "theirs", "--out", tmp_path / "run")
    assert printed["left_out"] == ["h.0.attn.bias", "h.0.attn.masked_bias"]
    gyre("export", tmp_path / "run", "--out", tmp_path / "ours")
    again = load(tmp_path / "ours").state_dict()
    for name, value in model.state_dict().items():
        assert again[name].equal(value), name


def import_edited(name, edit, place, *words):
    """Saves the model with a config.json that `edit` has changed and imports it; returns what transformers makes of the files."""
    random_model(name).save_pretrained(place / "theirs")
    path = place / "theirs/config.json"
    config = json.loads(path.read_text())
    edit(config)
    path.write_text(json.dumps(config))
    gyre("import", place / "theirs", "--out", place / "run", *words)
    return load(place / "theirs", auto_class(name))


def same_outputs(model, place):
    tokens = some_tokens(CONTEXT)
    logits, _ = outputs(place / "run", tokens, place)
    torch.testing.assert_close(logits, logits_of(model, tokens), rtol=0, atol=1e-4)


def test_berts_special_tokens_are_those_of_its_tokenizer(tmp_path):
    """Also if tokenizer.json has them in its vocabulary alone."""
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in ["[PAD]", "[UNK]", *"abc", "[CLS]", "[SEP]", "[MASK]"]))
    random_model("bert").save_pretrained(tmp_path / "theirs")
    transformers.BertTokenizerFast(tmp_path / "vocab.txt").save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs/tokenizer.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), added_tokens=[])))
    assert gyre_json("import", tmp_path / "theirs", "--out", tmp_path / "run")["assumed_tokens"] == {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    bert = tomllib.loads((tmp_path / "run/config.toml").read_text())["model"]["bert"]
    ours = [bert[f"{name}_token"] for name in ("classify", "separator", "mask")]
    assert ours == [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id] == [5, 6, 7]

    for file in (path, tmp_path / "theirs/vocab.txt"):
        file.unlink()
    assumed = gyre_json("import", tmp_path / "theirs", "--out", tmp_path / "other")["assumed_tokens"]
    assert assumed == {"[CLS]": 253, "[SEP]": 254, "[MASK]": 255}


OTHER_NAMES = dict(n_layer="num_hidden_layers", n_embd="hidden_size", n_head="num_attention_heads", n_positions="max_position_embeddings")


def test_gpt2s_sizes_may_have_their_other_names(tmp_path):
    def rename(config):
        for name, other in OTHER_NAMES.items():
            config[other] = config.pop(name)

    same_outputs(import_edited("gpt2", rename, tmp_path), tmp_path)


def test_a_theta_in_rope_scaling_is_refused_unless_it_is_the_models(tmp_path):
    """transformers 4 ignores it; 5 takes it."""
    rope = dict(rope_type="default", rope_theta=77.0)
    random_model("llama").save_pretrained(tmp_path / "other")
    path = tmp_path / "other/config.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), rope_scaling=rope)))
    assert "'rope_theta' is 77" in refusal("import", tmp_path / "other", "--out", tmp_path / "run")
    rope["rope_theta"] = LLAMA["rope_theta"]
    same_outputs(import_edited("llama", lambda config: config.update(rope_scaling=rope), tmp_path), tmp_path)


def test_pruned_heads_are_refused(tmp_path):
    model = random_model("bert")
    model.prune_heads({1: [0]})
    model.save_pretrained(tmp_path / "theirs")
    assert "'pruned_heads' is {\"1\":[0]}" in refusal("import", tmp_path / "theirs", "--out", tmp_path / "run")


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_null_key_value_heads_are_as_many_as_heads(kind, tmp_path, monkeypatch):
    """For Qwen2, 32 are meant if they are missing."""
    model, config = MODELS[kind]
    monkeypatch.setitem(MODELS, kind, (model, type(config)(**dict(LLAMA, num_key_value_heads=6))))
    same_outputs(import_edited(kind, lambda fields: fields.update(num_key_value_heads=None), tmp_path), tmp_path)


@pytest.mark.parametrize(
    "name, key", [("gpt2", "scale_attn_weights"), ("gpt2 tied", "tie_word_embeddings"), ("bert", "position_embedding_type")]
)
def test_a_null_that_is_another_model_in_transformers_is_refused(name, key, tmp_path):
    model = random_model(name)
    model.save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs/config.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), **{key: None})))
    other = MODELS[name][0].from_pretrained(tmp_path / "theirs").eval()
    tokens = some_tokens(CONTEXT)
    assert (logits_of(other, tokens) - logits_of(model, tokens)).abs().max() > 0.01
    assert f"'{key}'" in refusal("import", tmp_path / "theirs", "--out", tmp_path / "run")


# Models that gyre trained.

CONFIG = """
[model]
kind = "{kind}"
layers = 3
width = 48
heads = 4
context = {context}
{model}
[data]
tokens = "{tokens}"
[pipeline]
schedule = "pipedream"
stages = 4
microbatch = 4
accumulate = 2
[optimizer]
lr = 3e-3
[run]
updates = 20
precision = "fp32"
"""
TRAINED = {
    "gpt": ("gpt", 'activation = "gelu-tanh"'),
    "gpt without biases": ("gpt", "bias = false"),
    "llama": ("llama", 'bias = false\nactivation = "silu"\n[model.llama]\nkey_value_heads = 2'),
    "qwen2": ("llama", 'bias = false\nactivation = "silu"\n[model.llama]\nkey_value_heads = 2\nqkv_bias = true'),
    "gpt tied": ("gpt", "tie = true"),
    "llama tied": ("llama", 'bias = false\nactivation = "silu"\ntie = true'),
    "qwen3": ("llama", 'bias = false\nactivation = "silu"\n[model.llama]\nkey_value_heads = 2\nqk_norm = true\nhead_size = 10'),
    "llama, stretched": (
        "llama",
        'bias = false\nactivation = "silu"\n[model.llama]\nrope_scaling = "llama3"\nrope_factor = 8\nrope_original_context = 32',
    ),
    "padded": ("llama", 'bias = false\nactivation = "silu"\nvocabulary = 300'),
    "bert": ("bert", ""),
    "bert tied": ("bert", "tie = true"),
}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    place = tmp_path_factory.mktemp("data")
    lines = [f"verse {i}: and the waters of {i * 7919 % 1000} were upon the {i * 31 % 17} hills\n" for i in range(400)]
    (place / "text.txt").write_text("".join(lines))
    gyre("prepare", place / "text.txt", "--out", place / "tokens")
    return place / "tokens"


def train(name, tokens, place, out, *words):
    kind, model = TRAINED[name]
    (place / "run.toml").write_text(CONFIG.format(kind=kind, model=model, context=CONTEXT, tokens=tokens))
    gyre("train", place / "run.toml", "--out", out, *words)


def validation_tokens(tokens):
    """The sequences that gyre eval uses: (sequences, CONTEXT + 1)."""
    count = json.loads((tokens / "meta.json").read_text())["val_tokens"]
    data = (tokens / "val.bin").read_bytes()
    width = 2
    ids = torch.frombuffer(bytearray(data[len(data) - count * width :]), dtype=torch.int16).long()
    sequences = (len(ids) - 1) // CONTEXT
    return torch.stack([ids[i * CONTEXT : (i + 1) * CONTEXT + 1] for i in range(sequences)])


@pytest.mark.parametrize("name", [name for name in TRAINED if not name.startswith("bert")])
def test_a_trained_model_is_the_same_in_transformers(name, tokens, tmp_path):
    train(name, tokens, tmp_path, tmp_path / "run")
    gyre("export", tmp_path / "run", "--out", tmp_path / "ours")
    model = load(tmp_path / "ours", Qwen3 if name == "qwen3" else transformers.AutoModelForCausalLM)
    settings = model.generation_config
    assert (settings.eos_token_id, settings.bos_token_id, settings.pad_token_id) == (0, None, None)  # NUL ends documents

    ids = some_tokens(CONTEXT)
    logits, _ = outputs(tmp_path / "run", ids, tmp_path)
    torch.testing.assert_close(logits, logits_of(model, ids), rtol=0, atol=1e-4)

    prompt = list(b"verse 17")
    assert outputs(tmp_path / "run", prompt, tmp_path, greedy=50)[1] == greedy_tokens(model, prompt, 50)

    sequences = validation_tokens(tokens)
    evaluated = gyre_json("eval", tmp_path / "run")
    microbatch = 4
    sequences = sequences[: evaluated["tokens"] // CONTEXT]
    assert len(sequences) * CONTEXT == evaluated["tokens"] and len(sequences) >= microbatch
    with torch.no_grad():
        logits = model(input_ids=sequences[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).double(), sequences[:, 1:].reshape(-1))
    assert math.isclose(loss, evaluated["val_loss"], abs_tol=1e-5)


@pytest.mark.parametrize("name", ["bert", "bert tied"])
def test_a_trained_bert_is_the_same_in_transformers(name, tokens, tmp_path):
    train(name, tokens, tmp_path, tmp_path / "run")
    gyre("export", tmp_path / "run", "--out", tmp_path / "ours")
    model = load(tmp_path / "ours", transformers.BertForMaskedLM)
    ids = some_tokens(CONTEXT)
    ids[middle(CONTEXT)] = ids[-1] = 257  # the byte tokenizer's separator
    logits, _ = outputs(tmp_path / "run", ids, tmp_path)
    types = (torch.arange(CONTEXT) > middle(CONTEXT)).long()
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([ids]), token_type_ids=types[None]).logits[0]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-4)


def test_a_head_that_is_said_to_be_tied_is_found(tokens, tmp_path):
    """Without "tie_word_embeddings": false, transformers replaces the head with the embedding, and the tests above would fail."""
    train("gpt", tokens, tmp_path, tmp_path / "run")
    gyre("export", tmp_path / "run", "--out", tmp_path / "ours")
    config = json.loads((tmp_path / "ours/config.json").read_text())
    del config["tie_word_embeddings"]
    (tmp_path / "ours/config.json").write_text(json.dumps(config))
    ids = some_tokens(CONTEXT)
    logits, _ = outputs(tmp_path / "run", ids, tmp_path)
    wrong = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval()
    assert (logits_of(wrong, ids) - logits).abs().max() > 0.01
