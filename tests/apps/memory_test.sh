# Too little memory. A model that cannot fit is refused before anything is allocated, by every command that loads one.
# If memory runs out later, that is one line and exit 1, and nothing that was saved is lost.
source "$(dirname "$0")/common.sh"

short="--set run.updates=6 --set run.checkpoint_every=2 --set run.eval_every=3"
"$gyre" train run.toml --out run $short >/dev/null 2>&1 || fail "training"

# allocations COMMAND...: how many allocations its tensors make.
allocations() {
  LD_PRELOAD=$faults GYRE_COUNT_ALLOCATIONS=$work/count "$gyre" "$@" >/dev/null 2>&1 || fail "undisturbed: $*"
  cat count
}
# runs_out N COMMAND...: the N-th allocation fails.
runs_out() {
  local at=$1
  shift
  ends 1 "for one tensor cannot be had; make [pipeline] microbatch" \
    env LD_PRELOAD="$faults" GYRE_FAULT_ALLOCATION="$at" "$gyre" "$@"
  [ "$(grep -c '^gyre: out of memory: ' err.txt)" -eq 1 ] || fail "not one line: $(cat err.txt)"
  [ "$(tail -n 1 err.txt | cut -c 1-20)" = "gyre: out of memory:" ] || fail "not the last line: $(cat err.txt)"
}

for command in "eval run" "generate run --prompt verse --tokens 8" "diagnose run --draws 15 --updates 2"; do
  total=$(allocations $command)
  [ "$total" -gt 20 ] || fail "$command takes $total blocks only"
  for at in 1 $((total / 3)) $((total * 3 / 4)); do
    runs_out $at $command
    [ "$(wc -l <err.txt)" -eq 1 ] || fail "not one line: $command: $(cat err.txt)"
  done
done

# Training, from the first allocation to the last updates; earlier checkpoints can still be used.
total=$(allocations train run.toml --out counted $short)
for at in 1 $((total / 4)) $((total / 2)); do
  runs_out $at train run.toml --out fresh $short
  rm -rf fresh
done
runs_out $((total * 9 / 10)) train run.toml --out fresh $short
grep -q '"status":"failed"' fresh/metrics.jsonl || fail "not recorded as failed"
"$gyre" train --resume fresh >/dev/null 2>err.txt || fail "resume: $(tail -n 1 err.txt)"
for file in model optimizer; do
  cmp {run,fresh}/checkpoints/step-00000006/$file.safetensors || fail "$file.safetensors differs after a resume"
done

# Several processes, where it runs out in one that speaks through rank 0: before they have met, and in the middle.
# start_two VARIABLE=VALUE: starts two ranks, of which rank 1 has the variable.
start_two() {
  local store
  store=$(mktemp -d -p .)
  for rank in 1 0; do
    env GYRE_RANK=$rank GYRE_WORLD_SIZE=2 GYRE_LOCAL_RANK=$rank GYRE_LOCAL_WORLD_SIZE=2 GYRE_STORE="$store" GYRE_JOB=a \
      GYRE_RESTART=0 $([ $rank -eq 0 ] || echo "LD_PRELOAD=$faults $1") \
      "$gyre" train run.toml --out two $short >/dev/null 2>err.$rank &
    pids[rank]=$!
  done
}
start_two GYRE_COUNT_ALLOCATIONS="$work/count"
for rank in 0 1; do wait "${pids[rank]}" || fail "rank $rank undisturbed: $(cat err.$rank)"; done
total=$(cat count)
for at in 3 $((total / 2)); do
  rm -rf two
  start_two GYRE_FAULT_ALLOCATION=$at
  for rank in 0 1; do
    code_of "${pids[rank]}"
    [ "$code" -eq 1 ] || fail "allocation $at of $total: rank $rank: exit $code: $(head -c 2000 err.$rank)"
  done
  [ "$(grep -c '^gyre: ' err.0)" -eq 1 ] || fail "allocation $at: not one line: $(head -c 2000 err.0)"
  grep -qE '^gyre: rank 1 .*out of memory: .* for one tensor cannot be had; make' err.0 || fail "$(head -c 2000 err.0)"
  ! grep -qE 'frame #|alloc_cpu' err.0 err.1 || fail "internals: $(head -c 2000 err.0)"
done

# A limit above the least memory of the run but below the whole process: the allocator itself fails. (Here the address
# space is large enough for the libraries and their buffers; otherwise the run would wait for them.)
large="--set pipeline.stages=1 --set pipeline.executor=replay --set model.layers=1 --set optimizer.kind=adamw"
ends 1 "out of memory: " prlimit --as=1400000000 \
  "$gyre" train run.toml --out limited $large --set model.mlp_width=700000
grep -q '^gyre: out of memory: ' err.txt || fail "no line of its own: $(cat err.txt)"

# A model that cannot fit at all is refused by every command.
sed -i 's/^microbatch = .*/microbatch = 1048576/' run/config.toml
for command in "eval run" "diagnose run --draws 0"; do
  refuses "microbatch = 1048576 costs most, with 8 it would be" prlimit --as=2000000000 "$gyre" $command
done
"$gyre" generate run --prompt verse --tokens 2 >/dev/null || fail "generate needs no microbatch"
sed -i 's/^microbatch = .*/microbatch = 4/; s/^width = .*/width = 65536/' run/config.toml
for command in "eval run" "generate run --prompt verse" "diagnose run --draws 0"; do
  refuses "[model] width = 65536 costs most; it takes more memory" prlimit --as=2000000000 "$gyre" $command
done
refuses "[model] width = 65536 costs most, with" prlimit --as=2000000000 \
  "$gyre" train run.toml --out refused --set model.width=65536
