# A run's bits depend only on its configuration, not on the number of threads that the machine or OMP_NUM_THREADS
# offers. What the run says of the cores that it leaves idle.
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

# Who expects all cores to be used is told of idle ones.
one_core=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')
taskset -c "$one_core" "$gyre" train --check run.toml --out x --set pipeline.stages=1 >check.txt
! grep -q '^cores ' check.txt || fail "cores are idle where there is one: $(cat check.txt)"
cores=$("$gyre" info | sed -n 's/^cores *//p')
if [ "$cores" -gt 1 ]; then
  idle="the run uses 1 of $cores; threads_per_worker = $cores would use $cores, and may change last bits"
  "$gyre" train --check run.toml --out x --set pipeline.stages=1 >check.txt
  grep -qF "$idle" check.txt || fail "nothing of idle cores: $(cat check.txt)"
  "$gyre" launch -n 1 -- train run.toml --out launched --set pipeline.stages=1 --set run.updates=1 >/dev/null 2>launch.txt
  grep -qF "$idle" launch.txt || fail "nothing of idle cores under a launcher: $(cat launch.txt)"
  "$gyre" train --check run.toml --out x --set pipeline.stages=1 --set "pipeline.threads_per_worker=$cores" >check.txt
  ! grep -q '^cores ' check.txt || fail "all cores are used: $(cat check.txt)"
fi
