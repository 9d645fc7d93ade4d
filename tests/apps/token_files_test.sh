# The same tokens in files of gyre, llm.c, nanoGPT and Megatron give the same losses, bit for bit; mixtures resume.
source "$(dirname "$0")/common.sh"

# Writes, from gyre's own files, the files that the other programs would have written.
python3 - <<'PY'
import array, os, struct
def tokens(name):
    data = open(f"tokens/{name}.bin", "rb").read()
    return array.array("H", data[1024:])
def llmc(path, part, magic=20240520, version=1, code="H"):
    open(path, "wb").write(struct.pack("<256i", magic, version, len(part), *[0] * 253) + array.array(code, part).tobytes())
for name in "llmc", "nano", "megatron":
    os.makedirs(name)
for split in "train", "val":
    all = tokens(split)
    half = len(all) // 3
    llmc(f"llmc/bible_{split}_000001.bin", all[:half])
    llmc(f"llmc/bible_{split}_000002.bin", all[half:], 20240801, 7, "I")
    open(f"nano/{split}.bin", "wb").write(all.tobytes())
    open(f"megatron/text_{split}.bin", "wb").write(array.array("i", all).tobytes())
    lengths = [half, len(all) - half]
    open(f"megatron/text_{split}.idx", "wb").write(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ2i2q3q", 1, 4, 2, 3, *lengths, 0, 4 * half, 0, 1, 2))
PY
short=(--set run.updates=40 --set run.checkpoint_every=0)
"$gyre" train run.toml --out own "${short[@]}" >/dev/null 2>&1
for format in llmc nano megatron; do
  "$gyre" train run.toml --out $format-run "${short[@]}" --set data.tokens=$format --set data.vocabulary=256 >/dev/null 2>err.txt ||
    fail "$format: $(cat err.txt)"
  diff <(losses own) <(losses $format-run) >difference || fail "$format: losses differ: $(head -n 3 difference)"
done
# So does the same text prepared as several files, and the run goes on with one file or several only as it began.
"$gyre" prepare text.txt --out sharded --shard-tokens 5000 >/dev/null
[ -f sharded/train_000002.bin ] || fail "there is only one file: $(ls sharded)"
"$gyre" train run.toml --out sharded-run "${short[@]}" --set data.tokens=sharded >/dev/null 2>err.txt || fail "$(cat err.txt)"
diff <(losses own) <(losses sharded-run) >difference || fail "several files: losses differ: $(head -n 3 difference)"
"$gyre" train --resume sharded-run --set run.updates=41 >/dev/null 2>err.txt || fail "several files: $(cat err.txt)"
refuses "is not what this run was begun with" "$gyre" train --resume sharded-run --set run.updates=42 --set data.tokens=tokens
refuses "shard-tokens is 999; give 1000 to 2147483647" "$gyre" prepare text.txt --out few --shard-tokens 999
# There may be more files than the usual limit of open files, which any process may raise.
mkdir shards
for i in {1..100}; do cp llmc/bible_train_000002.bin shards/part_$i.bin; done
(ulimit -Sn 64 && "$gyre" train run.toml --check --out shards-run --set data.tokens=shards --set data.vocabulary=256) >/dev/null 2>err.txt ||
  fail "100 files: $(cat err.txt)"
# A mixture of one source equals that source.
sed 's/^\[data\]/[[data.source]]\nname = "bible"/' run.toml >one.toml
"$gyre" train one.toml --out one "${short[@]}" >/dev/null 2>err.txt || fail "$(cat err.txt)"
diff <(losses own) <(losses one) >difference || fail "one source: losses differ: $(head -n 3 difference)"
loss_of() { "$gyre" eval "$@" --json | sed 's/.*"step"//'; }
[ "$(loss_of own)" = "$(loss_of nano-run)" ] || fail "eval differs: $(loss_of own) $(loss_of nano-run)"
# Files that do not say their vocabulary are taken to be in the run's.
for format in nano llmc; do
  [ "$(loss_of own --data $format)" = "$(loss_of own)" ] || fail "eval --data $format differs: $(loss_of own --data $format) $(loss_of own)"
done
# A single file and several files for validation are read to their ends; so are files whose names do not say what for.
cp llmc/bible_val_000001.bin part_1.bin
cp llmc/bible_val_000002.bin part_2.bin
for files in nano/val.bin megatron/text_val 'llmc/*_val_*' 'part_?.bin'; do
  [ "$(loss_of own --data "$files")" = "$(loss_of own)" ] || fail "eval --data $files differs: $(loss_of own --data "$files") $(loss_of own)"
done
refuses "the run has no tokenizer" "$gyre" generate nano-run --prompt a

# With a tokenizer named beside them, these files are equivalent to those of gyre prepare: losses, generated text,
# exports.
mkdir letters letters-nano
{ printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; printf '%s\n' {a..z} '##'{a..z} , . ';' :; } >letters/vocab.txt
"$gyre" prepare text.txt --out pieces --tokenizer letters >/dev/null
for split in train val; do tail -c +1025 pieces/$split.bin >letters-nano/$split.bin; done
"$gyre" train run.toml --out pieces-run "${short[@]}" --set data.tokens=pieces >/dev/null 2>err.txt || fail "$(cat err.txt)"
"$gyre" train run.toml --out letters-run "${short[@]}" --set data.tokens=letters-nano --set data.tokenizer=letters >/dev/null 2>err.txt || fail "$(cat err.txt)"
diff <(losses pieces-run) <(losses letters-run) >difference || fail "with a tokenizer: losses differ: $(head -n 3 difference)"
for run in pieces letters; do
  "$gyre" generate $run-run --prompt "and the" --tokens 20 --temperature 0 >$run.txt
  "$gyre" export $run-run --out $run-exported >/dev/null
done
[ "$(loss_of pieces-run)" = "$(loss_of pieces-run --data letters-nano)" ] || fail "eval of files without a tokenizer differs"
refuses "its tokenizer.json is not what this run was begun with" "$gyre" eval pieces-run --data tokens
cmp pieces.txt letters.txt && cmp pieces-exported/tokenizer.json letters-exported/tokenizer.json || fail "not the same tokenizer"
sed -i 's/^q$/zz/' letters/vocab.txt
refuses "$PWD/letters-nano: its tokenizer.json is not what this run was begun with" "$gyre" train --resume letters-run --set run.updates=130
refuses "[data] tokenizer is for token files of other programs, and $PWD/pieces has its own; leave it out" \
  "$gyre" train run.toml --out x --set data.tokens=pieces --set data.tokenizer=letters
refuses "letters-nano: has no tokenizer; looked for" "$gyre" train run.toml --out x --set data.tokens=nano --set data.tokenizer=letters-nano

# A mixture continues bit for bit, with threads and in two processes; its sources must be those that it began with.
"$gyre" prepare text.txt --out other --val-fraction 0.2 >/dev/null
{ sed '/^\[data\]/,/^tokens/d' run.toml; printf '[data]\norder = "epochs"\nvocabulary = 256\n[[data.source]]\nname = "bible"\ntokens = "nano"\nweight = 3\n[[data.source]]\ntokens = "other"\n'; } >mixture.toml
"$gyre" train mixture.toml --out whole >/dev/null 2>err.txt || fail "$(cat err.txt)"
grep -q "bible: 75% of the sequences" err.txt || fail "the mixture is not told: $(cat err.txt)"
cp -r whole parts
rm -r parts/checkpoints/step-00000100 parts/checkpoints/step-00000120
"$gyre" launch -n 2 -- train --resume parts >/dev/null 2>err.txt || fail "$(cat err.txt)"
same_run whole parts "a mixture that goes on in two processes"
"$gyre" train mixture.toml --out heavier --set data.source.bible.weight=1 --set run.updates=20 >/dev/null 2>err.txt || fail "$(cat err.txt)"
grep -q "bible: 50% of the sequences" err.txt || fail "an override of a source is not heeded"
cp nano/train.bin kept.bin
printf '\001\000' | dd of=nano/train.bin bs=1 seek=100 conv=notrunc status=none
refuses "bible/train/train.bin" "$gyre" train --resume parts --set run.updates=130
cp kept.bin nano/train.bin

# BERT accepts them too.
"$gyre" train run.toml --out bert --set model.kind=bert "${short[@]}" --set run.updates=4 --set data.tokens=megatron --set data.vocabulary=256 >/dev/null 2>err.txt || fail "$(cat err.txt)"

refuses "token files do not say their vocabulary; set [data] tokenizer, or [data] vocabulary" "$gyre" train run.toml --out x --set data.tokens=nano
refuses "is outside the vocabulary of 100" "$gyre" train run.toml --out x --set data.tokens=nano --set data.vocabulary=100
cp llmc/bible_train_000001.bin megatron/
refuses "megatron: has token files of llm.c (bible_train_000001.bin) and of Megatron (text_train.bin)" \
  "$gyre" train run.toml --out x --set data.tokens=megatron --set data.vocabulary=256
printf '\n[[data.source]]\ntokens = "nano"\n' >>run.toml
refuses "tokens and [[data.source]] are both given" "$gyre" train run.toml --out x
[ ! -e x ] || fail "a refused run left something behind"
