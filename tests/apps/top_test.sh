# gyre top without a terminal: one screen, the figures as JSON, and its messages about runs that are not running.
source "$(dirname "$0")/common.sh"

refuses "no run is here" "$gyre" top nowhere
refuses "no config.toml" "$gyre" top tokens
refuses "gyre top needs" "$gyre" top
refuses "unknown flag --onse; did you mean --once" "$gyre" top --onse run
mkdir new && cp run.toml new/config.toml
"$gyre" top --once new | grep -q 'has not begun' || fail "$("$gyre" top --once new)"

"$gyre" train run.toml --out run --set run.updates=100000 --set run.live_seconds=0.2 >out.txt 2>err.txt &
pid=$!
wait_for_step run 23 $pid
for _ in $(seq 100); do
  "$gyre" top --once run >top.txt
  # What a new segment has not yet seen is shown as -.
  ! { grep -qE '^ +2 .*%' top.txt && grep -qE 'delay by stage +0:[0-9.]+' top.txt; } || break
  sleep 0.1
done
for words in '(training|evaluating|saving)$' 'update [0-9]+ of 100000' 'loss [0-9.]+' '^ +0 .*%' '^ +2 .*%' 'delay by stage +0:[0-9.]+' '^memory .*MiB'; do
  grep -qE "$words" top.txt || fail "not told: $words: $(cat top.txt)"
done
"$gyre" top run </dev/null 2>said.txt | grep -q 'q quits' && fail "keys without a terminal"
grep -q 'no terminal' said.txt || fail "not told: $(cat said.txt)"
"$gyre" top --json run | python3 -c '
import json, sys
figures = json.load(sys.stdin)
assert figures["running"] and figures["live"]["state"] in ("training", "evaluating", "saving"), figures
assert len(figures["live"]["workers"]) == 3 and figures["live"]["updates"] == 100000, figures
'
kill -9 $pid; wait $pid 2>/dev/null || true
"$gyre" top --once run | grep -qE 'not running: last seen (training|evaluating|saving)' || fail "$("$gyre" top --once run)"
"$gyre" top --json run | grep -q '"running": false' || fail "it is said to run"

last=$(($(grep -c '"event":"step"' run/metrics.jsonl) + 20))  # how far it was killed depends on the machine
"$gyre" train --resume run --set run.updates=$last >/dev/null 2>&1
"$gyre" top --once run | grep -qE 'finished [0-9:]+ ago' || fail "$("$gyre" top --once run)"
"$gyre" train --resume run --set run.updates=$((last + 1)) --set run.live_seconds=0 >/dev/null 2>&1
[ ! -e run/live.json ] || fail "live.json of an earlier session is there"
"$gyre" top --once run | grep -q "update $((last + 1))" || fail "$("$gyre" top --once run)"
echo '{"state":' >run/live.json
refuses "run/live.json: is damaged" "$gyre" top run
rm run/live.json
echo 'nonsense' >>run/metrics.jsonl
refuses "run/metrics.jsonl:" "$gyre" top --once run
