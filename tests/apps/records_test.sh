# What a run leaves behind, as a user meets it: finished runs, checkpoints that are gone, what is said and reported.
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
cmp before <(find run -type f -printf '%p %T@\n' | sort) || fail "a finished run was changed"
"$gyre" eval run >/dev/null || fail "eval"

mv run/checkpoints away
refuses "says that one was written at step 40; mount or put back what is missing" "$gyre" train --resume --out run --set run.updates=60
ln -s nowhere run/checkpoints
refuses "is a link to nowhere, which is not there" "$gyre" train --resume --out run --set run.updates=60
refuses "is a link to nowhere, which is not there" "$gyre" eval run
rm run/checkpoints
mv away run/checkpoints
mv run/config.toml away.toml
refuses "is left of a run whose config.toml is gone" "$gyre" train run.toml --out run
mv away.toml run/config.toml
cmp before <(find run -type f -printf '%p %T@\n' | sort) || fail "what was refused changed something"

"$gyre" train --resume --out run --set run.updates=60 --set optimizer.lr=1e-3 >/dev/null 2>err.txt
grep -qF "changed: optimizer.lr 0.003 -> 0.001, run.updates 40 -> 60" err.txt || fail "changes are not told: $(cat err.txt)"
grep -qF '{"event":"resume","step":40,"changed":{"optimizer.lr":[0.003,0.001],"run.updates":[40,60]}}' run/metrics.jsonl || fail "changes are not recorded"
