# A run continues with the data that it began with: every command notices other tokens or another tokenizer.
source "$(dirname "$0")/common.sh"

sed 's/waters/winds /' text.txt >other.txt
"$gyre" train run.toml --out run --set run.updates=20 >/dev/null 2>&1
cp -r run before

# Preparing other text into the run's data is refused; with --overwrite it is done, but the run is not continued with
# it.
refuses "--overwrite" "$gyre" prepare other.txt --out tokens
cp -r tokens old-tokens
"$gyre" prepare other.txt --out tokens --overwrite >/dev/null
refuses "tokens/train.bin" "$gyre" train --resume --out run --set run.updates=40
refuses "tokens/train.bin" "$gyre" train --check --resume run --set run.updates=40
refuses "tokens/val.bin" "$gyre" eval run
refuses "tokens/train.bin" "$gyre" diagnose run --draws 0
diff -r run before >/dev/null || fail "a refused command changed the run"
"$gyre" eval run --data tokens >/dev/null || fail "other text by the same tokenizer is evaluated when it is asked for"
rm -r tokens && mv old-tokens tokens

# From another directory: the run finds its data.
(mkdir elsewhere && cd elsewhere && "$gyre" eval ../run >/dev/null) || fail "eval from another directory"

# Another tokenizer with the same number of pieces.
if "$gyre" info --json | grep -q '"bpe"'; then
  "$gyre" prepare text.txt --out bpe --tokenizer bpe --vocab-size 320 >/dev/null
  "$gyre" prepare other.txt --out bpe-other --tokenizer bpe --vocab-size 320 >/dev/null
  "$gyre" train run.toml --out bpe-run --set run.updates=5 --set data.tokens=bpe --set run.checkpoint_every=0 >/dev/null 2>&1
  cp bpe-run/tokenizer/tokenizer.model kept.model
  "$gyre" prepare other.txt --out bpe --tokenizer bpe --vocab-size 320 --overwrite >/dev/null
  refuses "tokenizer.model" "$gyre" train --resume --out bpe-run --set run.updates=9
  cmp kept.model bpe-run/tokenizer/tokenizer.model || fail "the run's tokenizer was overwritten"
  refuses "tokenizer.model" "$gyre" eval bpe-run --data bpe-other
  refuses "gyre prepare --tokenizer RUN/tokenizer" "$gyre" eval bpe-run --data bpe-other
  # Text prepared with the run's tokenizer, as the message advises, is accepted.
  "$gyre" prepare text.txt --out bpe-again --tokenizer bpe-run/tokenizer >/dev/null
  "$gyre" eval bpe-run --data bpe-again >/dev/null || fail "text that was prepared with the run's tokenizer"
  refuses "tokenizer.model" "$gyre" eval run --data bpe-other
  cp bpe-other/tokenizer.model bpe-run/tokenizer/
  refuses "tokenizer.model" "$gyre" generate bpe-run --prompt verse
fi

# A run's own copy of its tokenizer cannot be prepared again.
cp -r run broken
echo '{' >broken/tokenizer/meta.json
refuses "broken/tokenizer/meta.json: not JSON; put back the one that the run had" "$gyre" eval broken
refuses "broken/tokenizer/meta.json: not JSON; put back the one that the run had" "$gyre" train --resume broken --set run.updates=40
echo '{}' >broken/tokenizer/meta.json
refuses "not a meta.json of this gyre; put back the one that the run had" "$gyre" eval broken
rm broken/tokenizer/meta.json
refuses "broken/tokenizer/meta.json: is missing; put back the one that the run had" "$gyre" eval broken
cp tokens/meta.json broken/tokenizer/
"$gyre" eval broken >/dev/null || fail "meta.json of the prepared text does not mend the run"

# The file that has changed is named, even if it is not the first.
mkdir apart && cp tokens/train.bin apart/train.bin && cp tokens/val.bin apart/other.bin
"$gyre" train run.toml --out parts --set data.tokens=apart/train.bin --set data.val_tokens=apart/other.bin \
  --set data.vocabulary=256 --set run.updates=4 >/dev/null 2>&1
cp tokens/train.bin apart/other.bin
refuses "gyre: val/other.bin ($PWD/apart/other.bin): is not what this run was begun with" "$gyre" train --resume parts --set run.updates=8

# generate and eval need only the weights.
rm run/checkpoints/*/optimizer.safetensors
"$gyre" generate run --prompt verse --tokens 3 >/dev/null || fail "generate reads the optimizer's state"
"$gyre" eval run >/dev/null || fail "eval reads the optimizer's state"
