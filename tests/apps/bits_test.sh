# Identical bits: one thread (replay), threads, and 2 and 4 processes under gyre launch give the same losses,
# evaluations, final weights and optimizer state. By default tests a few cases; GYRE_BITS=all takes every schedule and
# model, tied or not, AdamW and rotation, one and two replicas.
source "$(dirname "$0")/common.sh"

cat >run.toml <<'TOML'
[model]
layers = 4
width = 16
heads = 2
context = 16
dropout = 0.1
[data]
tokens = "tokens"
[pipeline]
stages = 4
microbatch = 2
accumulate = 4
[optimizer]
lr = 3e-3
ema_decay = 0.9
[optimizer.basis-rotation]
interval = 2
[run]
updates = 6
eval_every = 3
eval_batches = 2
checkpoint_minutes = 0
TOML

# same_bits RUN WHAT: the run must have the bits of the one named replay.
same_bits() {
  diff <(losses replay) <(losses "$1") >difference || fail "$2: losses differ: $(head -n 3 difference)"
  same_tensors {replay,"$1"}/checkpoints/step-00000006 "$2"
}

compared=0
# compare SCHEDULE MODEL OPTIMIZER REPLICAS [TIE]
compare() {
  local words=(--set "pipeline.schedule=$1" --set "model.kind=$2" --set "optimizer.kind=$3" --set "pipeline.replicas=$4" --set "model.tie=${5:-false}")
  [ "$2" != llama ] || words+=(--set model.activation=silu --set model.bias=false --set model.dropout=0 --set model.llama.key_value_heads=1)
  rm -rf replay threads in-*
  "$gyre" train run.toml "${words[@]}" --out replay --set pipeline.executor=replay >out.txt 2>&1 ||
    fail "$*, replay: $(tail -n 1 out.txt)"
  [ "$(grep -c '"event":"step"' replay/metrics.jsonl)" -eq 6 ] || fail "$*: not six updates"
  "$gyre" train run.toml "${words[@]}" --out threads >out.txt 2>&1 || fail "$*, threads: $(tail -n 1 out.txt)"
  same_bits threads "$*, threads"
  local workers=4 ranks
  # These have two stages on each worker.
  case $1 in interleaved-1f1b | zb-v | dualpipe-v) workers=2 ;; esac
  for ranks in 2 4; do
    [ $ranks -le $((workers * $4)) ] || continue
    "$gyre" launch -n $ranks -- train run.toml "${words[@]}" --out in-$ranks >out.txt 2>&1 ||
      fail "$*, $ranks processes: $(tail -n 1 out.txt)"
    same_bits in-$ranks "$*, $ranks processes"
    compared=$((compared + 1))
  done
}

if [ "${GYRE_BITS:-}" = all ]; then
  for schedule in gpipe 1f1b interleaved-1f1b zb-h1 zb-v dualpipe-v chimera pipedream pipedream-2bw paci amdp; do
    for model in gpt bert llama; do
      for optimizer in adamw basis-rotation; do
        for replicas in 1 2; do
          compare $schedule $model $optimizer $replicas
          compare $schedule $model $optimizer $replicas true
        done
      done
    done
    echo "$schedule: the same bits, $compared comparisons so far"
  done
else
  compare pipedream gpt basis-rotation 1
  compare amdp bert adamw 2
  compare 1f1b llama basis-rotation 1 true
  compare pipedream gpt adamw 1 true
fi
# The summary says what a tied weight means for the run.
"$gyre" train --check run.toml --set model.tie=true >out.txt 2>&1 || fail "--check: $(tail -n 1 out.txt)"
grep -q "^tied  *stage 3 reads embedding.token.weight of stage 0, with that stage's delay of 1$" out.txt ||
  fail "nothing of the tied weight: $(cat out.txt)"
echo "$compared runs in processes had the bits of replay and threads"
