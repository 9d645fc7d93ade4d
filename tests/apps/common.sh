# What the scripts share: a workplace that goes away, a small text, its tokens and a small configuration.
set -euo pipefail
gyre=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
frequency = 5
[run]
updates = 120
eval_every = 30
eval_batches = 3
checkpoint_every = 20
TOML

# The losses of a run by step, and evaluations: what must not change. Timing is left out.
losses() {
  grep -E '"event":"(step|eval)"' "$1/metrics.jsonl" | sed -E 's/,"tokens_per_second.*//'
}
same_run() {
  diff <(losses "$1") <(losses "$2") >difference || fail "$3: losses differ: $(head -n 3 difference)"
  local step=checkpoints/step-00000120
  cmp "$1/$step/model.safetensors" "$2/$step/model.safetensors" || fail "$3: weights differ"
  cmp "$1/$step/optimizer.safetensors" "$2/$step/optimizer.safetensors" || fail "$3: optimizer state differs"
}
