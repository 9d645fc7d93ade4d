"""Tokens equal those of Hugging Face's tokenizers, on the King James Bible and on a text with difficult Unicode."""

import itertools
import json
import subprocess

import numpy
import pytest
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from gyre_programs import BUILD, gyre

RUN = """
[model]
layers = 1
width = 16
heads = 2
context = 16
[data]
tokens = "{tokens}"
[pipeline]
stages = 1
microbatch = 2
[run]
updates = 1
"""

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
          r"\s+(?!\S)|\s")
# Without [[:punct:]], which has symbols too in the library's newer releases, as in gyre, but not yet in this one.
CLASSES = r"\b\w+|\p{P}+|\p{Han}+|[^\S\r\n]+|[[:^alpha:]]|(?m:.)"
HARD = (
    "Hello  WORLD, I'M we'LL they\u2019re DON'T 'S it's\tx\n\n\n  a   b \u00a0 \u3000\u5168\u89d2\u3000\u7a7a \u180e x\u200b\u2028y\u0085z\n"
    "e\u0301 \u00e9 a\u0308\u0323 \u1e69 s\u0323\u0307 \u00c5 \u212b \ufb01 \u00bd \u0130stanbul \u0131 \u00df \u1e9e \u03a3\u0391\u03a3\n"
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 "
    "\u0661\u0662\u0663 \u0967\u0968 \u2167 \U0001d7d8 \u6f22\u5b57\u304b\u306a\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab \u4e2d\u6587\uff0c\u6d4b\u8bd5\u3002\n"
    "\x01\x02\x7f\x1b[0m \ufffd \ufeff 1234567890 12,345.678 3.14e-10 ----- !!!??? \u2026 \u201cquotes\u201d $100 \u20ac50 `code`\n"
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 x\u00b2 \u24b6b \u6f22\u3001\u3005\n"
    "<|endoftext|>mid</s> [SEP] [MASK] http://example.com/?q=1&b=2#frag\n" + " " * 300 + "x" + "\n" * 50 + "\r\n\r\n"
    + "a" * 5000 + " " + "\u00e9" * 700 + "!" * 999 + "1" * 777 + "\t" * 99 + "end  ")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    directory = tmp_path_factory.mktemp("texts")
    bible = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], check=True, capture_output=True, text=True).stdout
    bible = "".join(line.split(" ", 1)[1] for line in bible.splitlines(keepends=True))
    paths = [directory / "bible.txt", directory / "hard.txt"]
    for path, text in zip(paths, (bible, HARD)):
        path.write_text(text, encoding="utf-8", newline="")
    return paths


def byte_level(pre_tokenizer, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, trainers.BpeTrainer(vocab_size=3000, special_tokens=["<|endoftext|>"], show_progress=False,
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def word_piece(normalizer=None, pre_tokenizer=None, **of_bert):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer or normalizers.BertNormalizer(**of_bert)
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer, trainers.WordPieceTrainer(vocab_size=3000, show_progress=False,
                                                special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])


KINDS = {
    "gpt2": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "llama3": lambda: byte_level(split(LLAMA3)),
    "qwen": lambda: byte_level(split(LLAMA3.replace("{1,3}", "")), normalizers.NFC()),
    "cl100k": lambda: byte_level(split(CL100K)),
    "classes": lambda: byte_level(split(CLASSES)),
    "bert": word_piece,
    "bert-cased": lambda: word_piece(lowercase=False),
    "whitespace": lambda: word_piece(normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(),
                                                           normalizers.StripAccents()]), pre_tokenizers.Whitespace()),
}


def prepare(tokenizer, text, out):
    words = ["prepare", text, "--out", out, "--tokenizer", tokenizer, "--val-fraction", "0"]
    return subprocess.run([BUILD / "apps/gyre/gyre", *map(str, words)], capture_output=True, text=True)


def tokens_of(data):
    raw = (data / "train.bin").read_bytes()
    wide = int.from_bytes(raw[:4], "little") == 20240801
    return numpy.frombuffer(raw[1024:], "<u4" if wide else "<u2")


def prepared(tokenizer, text, out, keep_end=False):
    """The tokens that gyre prepare writes; without the end-of-document token unless it is to be kept."""
    done = prepare(tokenizer, text, out)
    assert done.returncode == 0, done.stderr
    return tokens_of(out) if keep_end else tokens_of(out)[:-1]


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_tokenizers(kind, texts, tmp_path):
    tokenizer, trainer = KINDS[kind]()
    tokenizer.train([str(path) for path in texts], trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for text in texts:
        ours = prepared(tmp_path / "tokenizer.json", text, tmp_path / text.stem)
        theirs = tokenizer.encode(read(text), add_special_tokens=False).ids
        assert ours.tolist() == theirs, f"{kind} over {text.name}"


CHAT = "<|im_start|>user Say: HELLO <|im_end|>\n  <|user|>x <|USER|>  it's <|pad|>end<|im_end|>"


def save_slow(kind, text, place):
    """A vocabulary with tokens added as a user adds them, saved by the slow tokenizer of transformers."""
    tokenizer, trainer = KINDS[kind]()
    tokenizer.train([str(text)], trainer)
    (place / "vocabulary").mkdir()
    tokenizer.model.save(str(place / "vocabulary"))
    slow = {"gpt2": transformers.GPT2Tokenizer, "bert": transformers.BertTokenizer}[kind]
    slow = slow.from_pretrained(place / "vocabulary")
    slow.add_special_tokens({"eos_token": "<|im_end|>", "pad_token": "<|pad|>",
                             "additional_special_tokens": ["<|im_start|>"]})
    slow.add_tokens(["<|USER|>"])
    slow.save_pretrained(place / "saved")
    (place / "saved/config.json").write_text(json.dumps({"model_type": kind}))


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def as_earlier_versions_saved(place):
    """The added tokens in added_tokens.json, their roles in special_tokens_map.json."""
    edit(place / "tokenizer_config.json", lambda json: [json.pop(key) for key in list(json) if "token" in key])


def with_tokens_beside_the_json(place):
    """A tokenizer.json that lacks the added tokens, which the configuration has."""
    transformers.AutoTokenizer.from_pretrained(place).save_pretrained(place)
    edit(place / "tokenizer.json", lambda json: json.update(added_tokens=json["added_tokens"][:1]))


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
@pytest.mark.parametrize("form", [None, as_earlier_versions_saved, with_tokens_beside_the_json])
def test_added_tokens_and_the_end_are_those_of_transformers(kind, form, texts, tmp_path):
    save_slow(kind, texts[1], tmp_path)
    if form:
        form(tmp_path / "saved")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert theirs.eos_token == "<|im_end|>" and len(theirs) > theirs.vocab_size
    text = tmp_path / "chat.txt"
    text.write_text(CHAT)
    ours = prepared(tmp_path / "saved", text, tmp_path / "tokens", keep_end=True)
    assert ours.tolist() == theirs.encode(CHAT, add_special_tokens=False) + [theirs.eos_token_id]


NEW = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


@pytest.mark.parametrize("added", [
    [(3000, "<x>"), (3001, "<y>")],
    [(3001, "<x>"), (3000, "<y>")],
    [(3005, "<x>")],
    [(5, "<x>")],
    [(3000, "e")],
    [(3000, "<x>"), (3001, "<x>")],
])
def test_numbers_that_the_library_changes_are_refused(added, texts, tmp_path):
    tokenizer, trainer = KINDS["gpt2"]()
    tokenizer.train([str(texts[0])], trainer)
    content = json.loads(tokenizer.to_str())
    assert len(content["model"]["vocab"]) == 3000
    content["added_tokens"] += [{"id": number, "content": text, **NEW} for number, text in added]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    done = prepare(tmp_path / "tokenizer.json", texts[1], tmp_path / "tokens")
    if all(theirs.token_to_id(text) == number for number, text in added):
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "added_tokens" in done.stderr, done.stderr


def json_and_configuration():
    for lower, strip, configured, stripped, chinese in itertools.product(
            (True, False), (None, True, False), (None, True, False), (None, True, False), (None, False)):
        settings = {"do_lower_case": configured, "strip_accents": stripped, "tokenize_chinese_chars": chinese}
        yield (word_piece(lowercase=lower, strip_accents=strip), "BertTokenizer",
               {key: value for key, value in settings.items() if value is not None})
    for own, configured in itertools.product((True, False), (None, True, False)):
        yield (byte_level(pre_tokenizers.ByteLevel(add_prefix_space=own)), "GPT2Tokenizer",
               {} if configured is None else {"add_prefix_space": configured})


def test_settings_that_transformers_changes_are_refused(texts, tmp_path):
    """Where gyre does not refuse, the tokens are the same."""
    text = tmp_path / "text.txt"
    text.write_text("the Caf\u00e9 THE \u6f22\u5b57 \u00e9t\u00e9\n" * 2)
    kept = 0
    for number, ((tokenizer, trainer), kind, settings) in enumerate(json_and_configuration()):
        place = tmp_path / str(number)
        place.mkdir()
        tokenizer.train([str(texts[1]), str(text)], trainer)
        tokenizer.save(str(place / "tokenizer.json"))
        for name in (kind, "PreTrainedTokenizerFast"):
            (place / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **settings}))
            theirs = transformers.AutoTokenizer.from_pretrained(place)
            theirs = theirs.encode(read(text), add_special_tokens=False)
            done = prepare(place, text, place / name)
            same = theirs == tokenizer.encode(read(text), add_special_tokens=False).ids
            assert done.returncode == (0 if same else 2), (kind, name, settings, done.stderr)
            if same:
                kept += 1
                assert tokens_of(place / name)[:-1].tolist() == theirs
            else:
                assert "by tokenizer_config.json" in done.stderr
    assert kept > number + 1


@pytest.mark.parametrize("words", [["byte"], ["bpe", "--vocab-size", "2000"]], ids=["byte", "bpe"])
def test_our_own_tokenizers_are_read_by_auto_tokenizer(words, texts, tmp_path):
    gyre("prepare", texts[0], "--out", tmp_path / "tokens", "--tokenizer", *words)
    (tmp_path / "run.toml").write_text(RUN.format(tokens=tmp_path / "tokens"))
    gyre("train", tmp_path / "run.toml", "--out", tmp_path / "run")
    gyre("export", tmp_path / "run", "--out", tmp_path / "exported")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "exported")
    trained = words[0] if words == ["byte"] else tmp_path / "run/tokenizer"
    for name, text in ((text.stem, read(text)) for text in texts):
        text = text.replace(theirs.eos_token, "")  # theirs reads it as the end of a document; gyre reads it as text
        file = tmp_path / f"{name}.txt"
        file.write_text(text, encoding="utf-8", newline="")
        ours = prepared(trained, file, tmp_path / name).tolist()
        assert ours == theirs.encode(text, add_special_tokens=False), name
        assert text == theirs.decode(ours, clean_up_tokenization_spaces=False), name


def test_a_bert_vocabulary_is_read_with_its_special_tokens(tmp_path):
    """Made from a vocab.txt, which says nothing of them."""
    (tmp_path / "vocab").mkdir()
    (tmp_path / "vocab/vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nrun\n##s\n")
    (tmp_path / "text.txt").write_text("the cat runs\n" * 100)
    gyre("prepare", tmp_path / "text.txt", "--out", tmp_path / "tokens", "--tokenizer", tmp_path / "vocab")
    (tmp_path / "run.toml").write_text(RUN.format(tokens=tmp_path / "tokens"))
    gyre("train", tmp_path / "run.toml", "--out", tmp_path / "run")
    gyre("export", tmp_path / "run", "--out", tmp_path / "exported")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "exported")
    assert theirs("the cat runs")["input_ids"] == [2, 5, 6, 7, 8, 3]
    assert theirs("cat", "runs")["input_ids"] == [2, 6, 3, 7, 8, 3]
    assert theirs("cat", "runs")["token_type_ids"] == [0, 0, 0, 1, 1, 1]
    names = (theirs.pad_token, theirs.unk_token, theirs.cls_token, theirs.sep_token, theirs.mask_token)
    assert names == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
