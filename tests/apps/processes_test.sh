# A run in several processes, which find each other by environment variables: the files are byte for byte those of one
# process. A failure in any process is reported by rank 0 in one line, and no process is left behind.
source "$(dirname "$0")/common.sh"

# start WORLD COMMAND...: starts one process per rank, rank 0 last. Sets `pids`, messages go to err.RANK.
start() {
  world=$1
  shift
  store=$(mktemp -d -p .)
  for ((rank = world - 1; rank >= 0; --rank)); do
    GYRE_RANK=$rank GYRE_WORLD_SIZE=$world GYRE_LOCAL_RANK=$rank GYRE_LOCAL_WORLD_SIZE=$world GYRE_STORE=$store \
      GYRE_JOB=${job:-a} GYRE_RESTART=0 "$@" >out.$rank 2>err.$rank &
    pids[rank]=$!
  done
}
# all_end CODE: every rank must exit with CODE.
all_end() {
  for ((rank = 0; rank < world; ++rank)); do
    code_of "${pids[rank]}"
    [ "$code" -eq "$1" ] || fail "rank $rank: exit $code instead of $1: $(tail -n 3 err.$rank)"
  done
}
# only_rank_0_says WORDS: rank 0 prints WORDS in one line, other ranks print nothing.
only_rank_0_says() {
  [ "$(grep -cE '^gyre: ' err.0)" -eq 1 ] && grep -qE "$1" err.0 || fail "no '$1' in: $(cat err.0)"
  for ((rank = 1; rank < world; ++rank)); do
    [ ! -s err.$rank ] || fail "rank $rank speaks: $(cat err.$rank)"
  done
}

"$gyre" train run.toml --out whole >/dev/null 2>&1
for world in 2 3; do
  start $world "$gyre" train run.toml --out in-$world
  all_end 0
  same_run whole in-$world "$world processes"
  [ ! -s out.1 ] || fail "rank 1 prints: $(cat out.1)"
done
grep -q "finished at step 120" out.0 || fail "rank 0 does not print: $(cat out.0)"

# A schedule with two directions, and a run of three processes that continues in one, in two, and with threads.
amdp="--set pipeline.schedule=amdp --set pipeline.accumulate=4 --set optimizer.decay=constant"
"$gyre" train run.toml --out amdp $amdp >/dev/null 2>&1
start 3 "$gyre" train run.toml --out amdp-3 $amdp --set run.updates=40
all_end 0
"$gyre" train --resume amdp-3 --set run.updates=80 >/dev/null 2>&1 || fail "threads do not go on from processes"
start 2 "$gyre" train --resume amdp-3 --set run.updates=120
all_end 0
same_tensors {amdp,amdp-3}/checkpoints/step-00000120 "processes, threads and processes"
[ -e amdp-3/checkpoints/step-00000120/model-00002-of-00002.safetensors ] || fail "rank 1 wrote nothing"
start 2 "$gyre" train --resume amdp-3
all_end 0
grep -q "nothing to do" err.0 || fail "a finished run: $(cat err.0)"

# A rank that is killed, is stopped, or gets SIGTERM.
endless="--set run.updates=100000 --set pipeline.stall_seconds=2"
start 3 "$gyre" train run.toml --out killed $endless
wait_for_checkpoint killed 20 "${pids[0]}"
kill -KILL "${pids[1]}"
code_of "${pids[1]}"
pids[1]=
for rank in 0 2; do
  code_of "${pids[rank]}"
  [ "$code" -eq 1 ] || fail "rank $rank: exit $code after rank 1 was killed"
done
# The message contains a rank's last action only if the rank has reported one, which it does several times in
# stall_seconds.
only_rank_0_says "rank 1 \(process [0-9]+ on .*\) is gone: the connection is closed(; it was last at: worker 1 .*)?; .*step [0-9]+, the last that was saved"
grep -q '"event":"end","status":"failed"' killed/metrics.jsonl || fail "not recorded as failed"
start 2 "$gyre" train --resume killed --set run.updates=120
all_end 0

start 2 "$gyre" train run.toml --out frozen $endless
wait_for_step frozen 23 "${pids[0]}"
kill -STOP "${pids[1]}"
code_of "${pids[0]}"
[ "$code" -eq 1 ] || fail "exit $code after rank 1 was stopped"
grep -qE "^gyre: rank 1 .* has said nothing for [0-9.]+ s" err.0 || fail "not named: $(tail -n 1 err.0)"
kill -CONT "${pids[1]}"
code_of "${pids[1]}"
[ "$code" -eq 1 ] || fail "exit $code of the rank that was stopped"

for asked in 0 1; do
  start 2 "$gyre" train run.toml --out asked-$asked $endless
  wait_for_step asked-$asked 23 "${pids[0]}"
  kill -TERM "${pids[asked]}"
  all_end 143
  step=$(drained_at asked-$asked)
  [ -e "asked-$asked/checkpoints/step-$(printf %08d "$step")/manifest.json" ] || fail "no checkpoint after SIGTERM"
  [ "$(grep -c '^stopping: the pipeline drains' err.0)" -eq 1 ] || fail "SIGTERM to rank $asked is not told: $(cat err.0)"
done

# A drain that another rank was asked for is given up as any is, if a worker (here of rank 0) does not come back.
start 2 bash -c '[ "$GYRE_RANK" -ne 0 ] || export LD_PRELOAD=$0; exec "$@"' "$faults" env GYRE_FAULT_READ="$work/disk" \
  "$gyre" train run.toml --out stuck $endless --set run.eval_every=0 --set pipeline.stall_seconds=1
wait_for_checkpoint stuck 20 "${pids[0]}"
mkfifo disk  # from here on reads hang
while kill -0 "${pids[0]}" 2>/dev/null && ! grep -q "has been inside" err.0; do read -rt 0.02 <> <(:) || true; done
kill -TERM "${pids[1]}"
code_of "${pids[0]}"
rm disk
[ "$code" -eq 1 ] || fail "exit $code of a drain that is stuck: $(tail -n 3 err.0)"
grep -q "^gyre: the drain is given up: .*the updates since step [0-9]* are lost" err.0 || fail "not given up: $(cat err.0)"
code_of "${pids[1]}"
[ "$code" -eq 1 ] || fail "exit $code of the other rank of a drain that is stuck"

# Ranks that would run something else do not begin. Only rank 0 prints a message, and nothing is written.
start_differently() {
  store=$(mktemp -d -p .)
  world=2
  for rank in 1 0; do
    job_here=a
    extra=()
    [ $rank -eq 0 ] || { job_here=$1; extra=("${@:2}"); }
    GYRE_RANK=$rank GYRE_WORLD_SIZE=2 GYRE_LOCAL_RANK=$rank GYRE_LOCAL_WORLD_SIZE=2 GYRE_STORE=$store \
      GYRE_JOB=$job_here GYRE_RESTART=0 "$gyre" train run.toml --out different "${extra[@]}" >out.$rank 2>err.$rank &
    pids[rank]=$!
  done
}
start_differently b
all_end 2
only_rank_0_says "^gyre: rank 1 \(process [0-9]+ on .*\): its job is not that of rank 0"
start_differently a --set optimizer.lr=1e-3
all_end 2
only_rank_0_says "its \[optimizer\] lr is not that of rank 0 \(0.001, and "
start_differently a --set data.tokens=nowhere
all_end 2
grep -qE "^gyre: rank 1 .*nowhere" err.0 || fail "not told: $(cat err.0)"
[ ! -e different ] || fail "a refused run left something behind"
start 2 "$gyre" train run.toml --out different --set pipeline.executor=replay
all_end 2
grep -q "executor = \"replay\" is one thread of one process, and 2 processes were started" err.0 || fail "$(cat err.0)"
start 4 "$gyre" train run.toml --out different
all_end 2
grep -q "4 processes were started, and the schedule has 3 workers" err.0 || fail "$(cat err.0)"

# Every rank exits with the code of rank 0: of a disk that is full (here a limit of rank 0 alone), of a divergence.
start 2 bash -c '[ "$GYRE_RANK" -ne 0 ] || { ulimit -f 90; trap "" XFSZ; }; exec "$@"' bash \
  "$gyre" train run.toml --out full --set run.updates=30
all_end 4
only_rank_0_says "File too large|no room|step [0-9]+ was not saved"
start 2 "$gyre" train run.toml --out diverged --set optimizer.kind=adamw --set optimizer.lr=1e5 --set optimizer.clip=0
all_end 3
only_rank_0_says "is not finite|is (nan|inf)"
