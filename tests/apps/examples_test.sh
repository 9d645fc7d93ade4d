# The examples, and the README's commands for `gyre launch`: a few updates of each configuration in two processes give
# the same bits as in one. Slow: some of the models have millions of parameters.
source_of_gyre=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

# A text long enough for all examples.
for i in $(seq 1 20000); do echo "verse $i: and the waters of $((i * 7919 % 1000)) were upon the $((i * 31 % 17)) hills"; done >text.txt
rm -r tokens
"$gyre" prepare text.txt --out tokens >/dev/null

tried=0
for example in "$source_of_gyre"/examples/*.toml; do
  name=$(basename "$example" .toml)
  grep -q '^\[model\]' "$example" && ! grep -q '^\[study\]' "$example" || continue  # studies start processes of their own
  [ $name != gpt2-124m ] || continue  # 4 GB of memory for each process
  few=(--set data.tokens=tokens --set run.updates=2 --set run.eval_every=2 --set run.eval_batches=1 --set run.checkpoint_every=0)
  "$gyre" train "$example" "${few[@]}" --out one-$name >out.txt 2>&1 || fail "$name: $(tail -n 1 out.txt)"
  "$gyre" launch -n 2 -- train "$example" "${few[@]}" --out two-$name >out.txt 2>&1 || fail "$name, launched: $(tail -n 1 out.txt)"
  same_tensors {one,two}-$name/checkpoints/step-00000002 "$name"
  rm -r one-$name two-$name
  tried=$((tried + 1))
  echo "$name: the same bits"
done
[ $tried -ge 4 ] || fail "only $tried examples were tried"

# The README's three commands: a run, continued in one process, continued in two.
few=(--set run.eval_every=0 --set run.checkpoint_every=0)
"$gyre" train "$source_of_gyre/examples/tiny.toml" --set data.tokens=tokens --set run.updates=6 --set optimizer.decay=constant \
  "${few[@]}" --out whole --set run.drains=[2,4] >/dev/null 2>&1 || fail "no whole run"
"$gyre" train "$source_of_gyre/examples/tiny.toml" --set data.tokens=tokens --set run.updates=2 --set optimizer.decay=constant \
  "${few[@]}" --out parts >/dev/null 2>&1
"$gyre" train --resume parts --set run.updates=4 >/dev/null 2>&1
"$gyre" launch -n 2 -- train --resume parts --set run.updates=6 >out.txt 2>&1 || fail "not resumed: $(tail -n 1 out.txt)"
same_tensors {whole,parts}/checkpoints/step-00000006 "resumed in two processes"
echo "resumed in two processes: the same bits"
