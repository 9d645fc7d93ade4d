# Shared by the scripts: a work directory, which is removed at the end with all that still runs there, a small text, its
# tokens, a small configuration, and functions that check commands.
set -euo pipefail
gyre=$1
faults=${2:-}  # faults.cpp
tensors=${GYRE_LIST_TENSORS:-$(dirname "$(realpath "$gyre")")/../../tests/apps/gyre_list_tensors}  # tensors.cpp
work=$(mktemp -d)
# What a script started and did not wait for, and what that started, ends with it: everything whose directory this is.
tidy() {
  local directory
  cd /
  for directory in /proc/[0-9]*/cwd; do
    [ "$directory" -ef "$work" ] || continue
    directory=${directory%/cwd}
    kill -KILL "${directory##*/}" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap tidy EXIT
cd "$work"
export OMP_NUM_THREADS=1

fail() { echo "FAILED: $*" >&2; exit 1; }

for i in $(seq 1 400); do echo "verse $i: and the waters of $((i * 7919 % 1000)) were upon the $((i * 31 % 17)) hills"; done >text.txt
"$gyre" prepare text.txt --out tokens >/dev/null

cat >run.toml <<'TOML'
[model]
layers = 3
width = 32
heads = 2
context = 32
dropout = 0.1
[data]
tokens = "tokens"
[pipeline]
stages = 3
microbatch = 4
accumulate = 2
[optimizer]
lr = 3e-3

[optimizer.basis-rotation]
interval = 5
[run]
updates = 120
eval_every = 30
eval_batches = 3
checkpoint_every = 20
TOML

# The losses by step and the evaluations of a run, which must be reproducible. Timing is left out.
losses() {
  grep -E '"event":"(step|eval)"' "$1/metrics.jsonl" | sed -E 's/,"tokens_per_second.*//'
}
same_run() {
  diff <(losses "$1") <(losses "$2") >difference || fail "$3: losses differ: $(head -n 3 difference)"
  local step=checkpoints/step-00000120
  same_tensors "$1/$step" "$2/$step" "$3"
}
# same_tensors CHECKPOINT CHECKPOINT WHAT: compares files that one process wrote by their bytes, those of several by
# tensor.
same_tensors() {
  local part
  for part in model optimizer; do
    if [ -e "$1/$part.safetensors" ] && [ -e "$2/$part.safetensors" ]; then
      cmp "$1/$part.safetensors" "$2/$part.safetensors" || fail "$3: tensors of the $part differ"
    else
      "$tensors" "$1" $part >left && "$tensors" "$2" $part >right || fail "$3: no tensors of the $part"
      diff left right >difference || fail "$3: tensors of the $part differ: $(head -n 3 difference)"
    fi
  done
}

# ends CODE WORDS COMMAND...: the command must exit with CODE and print WORDS on stderr.
ends() {
  local expected=$1 words=$2 code=0
  shift 2
  "$@" >out.txt 2>err.txt || code=$?
  [ "$code" -eq "$expected" ] || fail "exit $code instead of $expected: $*: $(head -c 2000 err.txt)"
  grep -qF -- "$words" err.txt || fail "no '$words' in: $(head -c 2000 err.txt)"
  ! grep -qE 'std::|c10::|at::|\.cc\(|frame #|unexpected failure|(^|[ :])INT\b|terminate' err.txt ||
    fail "internals: $*: $(head -c 2000 err.txt)"
}
# refuses WORDS COMMAND...: the command must exit with 2, print a single line with WORDS on stderr, and no result.
refuses() {
  ends 2 "$@"
  shift
  [ "$(wc -l <err.txt)" -eq 1 ] || fail "not one line: $*: $(head -c 2000 err.txt)"
  [ "$(wc -c <err.txt)" -lt $((600 + $(wc -c <<<"$*"))) ] || fail "too long: $(cat err.txt)"
  [ ! -s out.txt ] || fail "something on standard output: $*: $(head -c 2000 out.txt)"
}

# wait_for_step RUN STEP PID: waits until the run has made STEP updates, or has ended.
wait_for_step() {
  while kill -0 "$3" 2>/dev/null && ! grep -q "\"event\":\"step\",\"step\":$2," "$1/metrics.jsonl" 2>/dev/null; do
    read -rt 0.02 <> <(:) || true
  done
}
# wait_for_checkpoint RUN STEP PID: waits until the checkpoint has its final name, which may be some updates later, or
# until the run has ended.
wait_for_checkpoint() {
  while kill -0 "$3" 2>/dev/null && ! grep -q "\"event\":\"checkpoint\",\"step\":$2," "$1/metrics.jsonl" 2>/dev/null; do
    read -rt 0.02 <> <(:) || true
  done
}
# code_of PID: waits until the process has ended and puts its exit code into `code`.
code_of() { code=0; wait "$1" || code=$?; }
# kill_again SIGNAL PID: sends it until the process has ended: a signal soon after the first is the same request.
kill_again() { while kill -$1 $2 2>/dev/null; do read -rt 0.1 <> <(:) || true; done; }
# drained_at RUN: the update at which it was interrupted.
drained_at() { sed -nE 's/.*"event":"drain","step":([0-9]+).*/\1/p' "$1/metrics.jsonl"; }
