# A run's bits depend only on its configuration, not on the number of threads that the machine or OMP_NUM_THREADS
# offers.
source "$(dirname "$0")/common.sh"

# Long sides of 512 use a sketch, which begins with a decomposition before anything else is computed.
train() {
  "$gyre" train run.toml --out "$1" --set model.width=128 --set model.layers=2 --set model.context=8 \
    --set run.updates=6 --set run.eval_every=0 --set run.checkpoint_every=0 >/dev/null 2>&1 || fail "training $1"
}
OMP_NUM_THREADS=1 train one
OMP_NUM_THREADS=2 train two
(unset OMP_NUM_THREADS; train default)
for run in two default; do
  for file in model optimizer; do
    cmp "one/checkpoints/step-00000006/$file.safetensors" "$run/checkpoints/step-00000006/$file.safetensors" ||
      fail "$file differs with OMP_NUM_THREADS of $run"
  done
done
