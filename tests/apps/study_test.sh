# gyre study: a grid is run and compared, and is not run twice; a stopped and continued study gives the same results;
# bad input gives one line.
. "$(dirname "$0")/common.sh"

cat run.toml - >study.toml <<'TOML'
[study]
stages = [1, 3]
learning_rates = [1e-3, 3e-3]
sweep_updates = 30
smooth = 10
jobs = 2
diagnose = true
[[study.method]]
name = "AdamW"
set = ["optimizer.kind=adamw"]
[[study.method]]
name = "too | fast"
set = ["optimizer.kind=adamw", "optimizer.clip=0"]
learning_rates = [1e5]
TOML
sed -i 's/^\[pipeline\]/[pipeline]\nexecutor = "replay"/' study.toml

"$gyre" study study.toml --out whole >whole.md 2>whole.err || fail "study: $(tail -n 1 whole.err)"
grep -q '| AdamW | [0-9]* (1.00) | [0-9]* ([0-9.]*) |' whole.md || fail "no row of updates: $(cat whole.md)"
grep -qF '| too \| fast | diverged | diverged |' whole.md || fail "divergence is not told: $(cat whole.md)"
grep -q '| AdamW | [0-9.e+]* ([0-9.]*) | [0-9.e+]* ([0-9.]*) |' whole.md || fail "no diagnostics: $(cat whole.md)"
for file in results.md results.csv results.json loss-1.svg loss-3.svg slowdown.svg; do
  test -s "whole/$file" || fail "no $file"
done

# A second call runs nothing, and the tables are the same.
touch stamp
"$gyre" study study.toml --out whole >again.md 2>/dev/null
find whole/runs -name metrics.jsonl -newer stamp | grep -q . && fail "a second call ran something"
cmp whole.md again.md || fail "a second call gives another table"
"$gyre" study study.toml --out whole --report >report.md 2>/dev/null
cmp whole.md report.md || fail "--report gives another table"
grep -q '"diagnostics"' whole/results.json || fail "--report leaves the diagnostics out of results.json"

# Stopped as soon as a run is under way, then continued: the same losses. (Seconds are not compared.)
"$gyre" study study.toml --out parts --jobs 1 >/dev/null 2>&1 &
study=$!
until [ -s parts/runs/adamw-p1/trial30-lr0.001-seed1/metrics.jsonl ]; do
  kill -0 "$study" 2>/dev/null || fail "the study ended before it ran anything"
  read -rt 0.05 <> <(:) || true
done
kill -INT "$study"
code_of "$study"
[ "$code" = 130 ] || fail "a stopped study exits with $code"
"$gyre" study study.toml --out parts >parts.md 2>/dev/null
without_seconds() { sed '/^## Seconds/,/^## Last training/d' "$1"; }
diff <(without_seconds whole.md) <(without_seconds parts.md) || fail "a continued study differs"

# A run that is stopped, but not by the study.
sed 's/^updates = 120/updates = 100000/; s/sweep_updates = 30/sweep_updates = 50000/' study.toml >long.toml
"$gyre" study long.toml --out long --jobs 1 >/dev/null 2>err.txt &
study=$!
until [ -s long/runs/adamw-p1/trial50000-lr0.001-seed1/live.json ]; do
  kill -0 "$study" 2>/dev/null || fail "the study ended before it ran anything: $(cat err.txt)"
  read -rt 0.05 <> <(:) || true
done
kill -INT "$(sed -nE 's/.*"pid":([0-9]+),.*/\1/p' long/runs/adamw-p1/trial50000-lr0.001-seed1/live.json)"
code_of "$study"
[ "$code" = 1 ] || fail "exit $code of a study whose run was stopped"
stopped="gyre: long/runs/adamw-p1/trial50000-lr0.001-seed1: gyre train was stopped, though the study was not; the same command continues the study"
[ "$(cat err.txt)" = "$stopped" ] || fail "says: $(cat err.txt)"

# Bad input.
sed 's/interval = 5/interval = 6/' study.toml >other.toml
refuses "other settings than the study's (optimizer.basis-rotation.interval 5 -> 6); choose another --out" "$gyre" study other.toml --out whole
refuses "tokens: is text that gyre prepare made, and no place for a study" "$gyre" study study.toml --out tokens
cp -r whole/runs/adamw-p1/trial30-lr0.001-seed1 one
refuses "one: is a run, and no place for a study" "$gyre" study study.toml --out one
# Faults of later arms are reported before anything runs, and nothing is left behind.
sed 's/^stages = \[1, 3\]/stages = [1, 9]/' study.toml >other.toml
refuses "other/runs/adamw-p9/trial30-lr0.001-seed1: [pipeline] stages is 9, but the model has 8 layers" "$gyre" study other.toml --out other
sed 's/"optimizer.clip=0"/"optimizer.clip_scope=global"/' study.toml >other.toml
refuses 'other/runs/too-fast-p3/lr100000-seed1: [optimizer] clip_scope = "global" needs a schedule with a flush' "$gyre" study other.toml --out other
[ ! -e other ] || fail "a study that was refused left $(find other)"
refuses "absent.toml: cannot be opened" "$gyre" study absent.toml
mkdir empty
for place in nowhere empty; do refuses "$place: no study is here" "$gyre" study study.toml --out $place --report; done
[ -z "$(ls empty)" ] || fail "a study that is not there was compared: $(ls empty)"
# A failed run is reported in its own words, with the prefix "gyre:" only once.
run=$(echo whole/runs/adamw-p1/lr*-seed1)
mv "$run/metrics.jsonl" metrics
ends 2 "/metrics.jsonl: is missing, with the lines of steps" "$gyre" study study.toml --out whole
! grep -q 'gyre: .*gyre: ' err.txt || fail "told twice by whom: $(cat err.txt)"
! grep -qF "$run: $run" err.txt || fail "told twice where: $(cat err.txt)"
mv metrics "$run/metrics.jsonl"
sed 's/smooth/smoth/' study.toml >other.toml
refuses "did you mean 'smooth'" "$gyre" study other.toml
sed 's/tokens = "tokens"/tokens = "absent"/' study.toml >other.toml
refuses "absent" "$gyre" study other.toml --out absent-tokens
