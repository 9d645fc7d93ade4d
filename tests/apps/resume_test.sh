# A run that is killed or interrupted at any moment and resumed equals the uninterrupted one bit for bit.
source "$(dirname "$0")/common.sh"

"$gyre" train run.toml --out whole >/dev/null 2>&1
"$gyre" train run.toml --out replayed --set pipeline.executor=replay >/dev/null 2>&1
same_run whole replayed "replay"

for step in 1 23 40 61 95; do
  "$gyre" train run.toml --out killed >/dev/null 2>&1 &
  pid=$!
  wait_for_step killed "$step" "$pid"
  kill -9 "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  "$gyre" train --resume --out killed >/dev/null 2>&1 || fail "resume after kill -9 at step $step"
  same_run whole killed "kill -9 at step $step"
  rm -rf killed
done

# Ctrl-C drains at the current window, saves, and says how to continue. A fresh run with this drain point gives the same
# bits.
"$gyre" train run.toml --out interrupted --set run.updates=100000 >out.txt 2>err.txt &
pid=$!
wait_for_step interrupted 33 "$pid"
kill -INT "$pid"
code_of "$pid"
[ "$code" -eq 130 ] || fail "exit code $code after Ctrl-C"
grep -q -- "--resume interrupted" out.txt || fail "no word on how to resume"
stopped=$(drained_at interrupted)
[ "$stopped" -ge 33 ] || fail "drained at '$stopped'"
[ -e "interrupted/checkpoints/step-$(printf %08d "$stopped")/manifest.json" ] || fail "no checkpoint at the drain point"
last=$((stopped + 25))
"$gyre" train --resume --out interrupted --set run.updates=$last --set optimizer.decay=constant >/dev/null 2>&1

"$gyre" train run.toml --out planned --set run.updates=100000 --set "run.drains=[$stopped]" >/dev/null 2>&1 &
pid=$!
wait_for_step planned $((stopped + 5)) "$pid"
refuses "planned: another process is writing here" "$gyre" train --check --resume planned
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
diff <(losses interrupted | head -n "$stopped") <(losses planned | head -n "$stopped") >/dev/null || fail "the planned drain differs"

# The same without changed settings: an interrupted run, resumed to its end, equals a fresh run with the recorded drain
# point.
"$gyre" train run.toml --out stopped >/dev/null 2>&1 &
pid=$!
wait_for_step stopped 47 "$pid"
kill -INT "$pid" 2>/dev/null || true
wait "$pid" || true
point=$(drained_at stopped)
if [ -n "$point" ]; then  # otherwise it ended before the signal came
  "$gyre" train --resume --out stopped >/dev/null 2>&1
  "$gyre" train run.toml --out fresh --set "run.drains=[$point]" >/dev/null 2>&1
  same_run fresh stopped "Ctrl-C at $point"
fi

"$gyre" eval whole --json | grep -q '"step":120' || fail "eval"
one=$("$gyre" generate whole --prompt "verse 7" --tokens 40 --seed 5)
two=$(echo "verse 7" | "$gyre" generate whole --prompt-file - --tokens 40 --seed 5)
[ "$one" = "$two" ] || fail "the same seed gave other text"
[ "${one#verse 7}" != "$one" ] || fail "the text does not begin with the prompt"
# A session that makes no update has no rate.
cp -r whole unended
sed -i '/"event":"end"/d' unended/metrics.jsonl
"$gyre" train --resume unended >out.txt 2>/dev/null
grep -q '^finished at step 120: ' out.txt && ! grep -q 'tokens/s' out.txt || fail "says: $(cat out.txt)"
grep -q '"event":"end".*"tokens_per_second":null,"bubble_fraction":null' unended/metrics.jsonl || fail "another end: $(tail -n 1 unended/metrics.jsonl)"
# At such a temperature all bytes are alike, and the seed alone chooses one with which no character is whole.
grep -qF '"text":""' <<<"$("$gyre" generate whole --prompt verse --tokens 1 --temperature 1000 --seed 10 --json)" || fail "another byte"
[ "$("$gyre" generate whole --prompt verse --tokens 1 --temperature 1000 --seed 10)" = verse ] || fail "the prompt is not there"
