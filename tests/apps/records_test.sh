# What a run leaves behind: finished runs, missing checkpoints, messages and reports.
source "$(dirname "$0")/common.sh"

# without_times JSON
without_times() { sed -E 's/,"(tokens_per_second|bubble_fraction|seconds)":[^,}]*//g' "$1"; }

"$gyre" train run.toml --out run --set run.updates=40 --json >first.json 2>err.txt
grep -qF "saves to run/checkpoints every 20 updates (checkpoint_every), 10 minutes after the last save" err.txt || fail "no word on saving: $(cat err.txt)"
find run -type f -printf '%p %T@\n' | sort >before
"$gyre" train --resume --out run --json >again.json 2>err.txt || fail "resuming a finished run: $(cat err.txt)"
grep -qF "at step 40 of 40 already; nothing to do" err.txt || fail "no word on there being nothing to do: $(cat err.txt)"
cmp <(without_times first.json) <(without_times again.json) || fail "a finished run reports otherwise: $(cat first.json again.json)"
"$gyre" train --resume --out run --set run.updates=30 --json >passed.json 2>/dev/null
cmp <(without_times first.json) <(without_times passed.json) || fail "a target that was passed: $(cat passed.json)"
"$gyre" train --resume --out run --set run.updates=30 >out.txt 2>err.txt
[ ! -s out.txt ] && [ "$(wc -l <err.txt)" -eq 1 ] || fail "a target that was passed takes more than a line: $(cat out.txt err.txt)"
grep -qF "run: is at step 40 and [run] updates is 30; nothing to do. To go on: --set run.updates=N, more than 40" err.txt || fail "a target that was passed: $(cat err.txt)"
cmp before <(find run -type f -printf '%p %T@\n' | sort) || fail "a finished run was changed"
"$gyre" eval run >/dev/null || fail "eval"


# The result of --check is its findings. That a run exists already is reported last, after faults of the configuration.
"$gyre" train --check run.toml --out fresh >out.txt 2>err.txt || fail "--check: $(cat err.txt)"
grep -q '^stage ' out.txt && grep -q '^memory ' out.txt && [ ! -s err.txt ] || fail "--check does not go to standard output: $(cat err.txt)"
"$gyre" train --check --resume run --set run.updates=60 >out.txt 2>err.txt || fail "--check --resume: $(cat err.txt)"
grep -q '^resuming run at step 40' out.txt && tail -n 1 out.txt | grep -qF 'run can be resumed here' && [ ! -s err.txt ] || fail "--check --resume: $(cat out.txt err.txt)"
"$gyre" train --check --resume run >out.txt
[ "$(cat out.txt)" = "run: is at step 40 of 40 already; nothing to do. To go on: --set run.updates=N" ] || fail "--check of a finished run: $(cat out.txt)"
"$gyre" train --check run.toml --out fresh --set optimizer.warmup=500 --set optimizer.decay=wsd --set optimizer.cooldown=121 >out.txt
grep -q "^ *warmup is 500 updates and the run 120: the learning rate never reaches lr" out.txt || fail "a long warm-up: $(cat out.txt)"
grep -q "^ *cooldown is 121 updates and the run 120: the learning rate begins amid it" out.txt || fail "a long cooldown: $(cat out.txt)"
"$gyre" train --check run.toml --out fresh --set optimizer.warmup=21 --set optimizer.decay=wsd --set optimizer.cooldown=100 >out.txt
grep -q "^ *warmup is 21 updates, cooldown 100 and the run 120: the learning rate drops when warm-up ends" out.txt || fail "a cooldown amid the warm-up: $(cat out.txt)"
"$gyre" train --check run.toml --out fresh --set optimizer.warmup=120 >out.txt
! grep -q "warmup" out.txt || fail "a warm-up that just ends: $(cat out.txt)"
"$gyre" train --check run.toml --out fresh --set optimizer.warmup=20 --set optimizer.decay=wsd --set optimizer.cooldown=100 >out.txt
! grep -qE "warmup|cooldown" out.txt || fail "nothing is too long: $(cat out.txt)"
refuses "leave out --json" "$gyre" train --check run.toml --out fresh --json
for check in --check ""; do
  refuses "a run is here already" "$gyre" train $check run.toml --out run
  refuses "did you mean 'width'?" "$gyre" train $check run.toml --out run --set model.wdth=3
  refuses "use at most 8 stages" "$gyre" train $check run.toml --out run --set pipeline.stages=9
done

# If the trace of a finished run cannot be written, the run's result is printed first.
code=0
(ulimit -f 700; trap '' XFSZ; exec "$gyre" train run.toml --out untraced --set optimizer.kind=adamw --set run.updates=800 --set run.checkpoint_every=0 --trace "$work/trace.json") >out.txt 2>err.txt || code=$?
[ "$code" -eq 4 ] || fail "exit $code where the trace cannot be written: $(tail -n 2 err.txt)"
tail -n 1 err.txt | grep -q "trace.json.*: cannot be written" || fail "no word on the trace: $(tail -n 2 err.txt)"
grep -qF "finished at step 800" out.txt && grep -qF "run: untraced" out.txt || fail "the run is not told: $(cat out.txt)"

mv run/checkpoints away
refuses "says that one was written at step 40; mount or put back what is missing" "$gyre" train --resume --out run --set run.updates=60
ln -s nowhere run/checkpoints
refuses "is a link to nowhere, which is not there" "$gyre" train --resume --out run --set run.updates=60
refuses "is a link to nowhere, which is not there" "$gyre" eval run
rm run/checkpoints
mv away run/checkpoints
mv run/config.toml away.toml
refuses "belongs to a run whose config.toml is missing" "$gyre" train run.toml --out run
mv away.toml run/config.toml
cmp before <(find run -type f -printf '%p %T@\n' | sort) || fail "what was refused changed something"

"$gyre" train --resume --out run --set run.updates=60 --set optimizer.lr=1e-3 >/dev/null 2>err.txt
grep -qF "changed: optimizer.lr 0.003 -> 0.001, run.updates 40 -> 60" err.txt || fail "changes are not told: $(cat err.txt)"
grep -qF '{"event":"resume","step":40,"changed":{"optimizer.lr":[0.003,0.001],"run.updates":[40,60]}}' run/metrics.jsonl || fail "changes are not recorded"
