# Signals and limits: the first signal requests an orderly end and is answered at once, the second ends the run.
# Resources that are not available (threads, address space, file size) give one line and exit 1. Exit codes: 3 diverged,
# 130, 143.
source "$(dirname "$0")/common.sh"

endless="--set run.updates=100000"

# For every signal and executor: an answer at once, a checkpoint at the drain point, the signal's own exit code.
for kind in "INT 130 threads" "TERM 143 replay" "HUP 143 threads"; do
  read -r signal expected executor <<<"$kind"
  "$gyre" train run.toml --out run-$signal $endless --set pipeline.executor=$executor >out.txt 2>err.txt &
  pid=$!
  wait_for_checkpoint run-$signal 20 $pid
  kill -$signal $pid
  code_of $pid
  [ "$code" -eq "$expected" ] || fail "exit $code after SIG$signal: $(cat err.txt)"
  step=$(drained_at run-$signal)
  [ -e "run-$signal/checkpoints/step-$(printf %08d "$step")/manifest.json" ] || fail "no checkpoint after SIG$signal"
  saved=$(sed -nE 's/^stopping: .*abandons the updates since step ([0-9]+)$/\1/p' err.txt)
  [ -n "$saved" ] || fail "no answer to SIG$signal: $(cat err.txt)"
  # The next checkpoint may still be in progress.
  [ $((saved % 20)) -eq 0 ] && [ "$saved" -ge 20 ] && [ "$saved" -le "$step" ] && [ "$saved" -ge $((step - 40)) ] ||
    fail "drained at step $step, but told that step $saved was saved"
  # If the pipeline was drained anyway, for a checkpoint or an evaluation, nothing is in flight to wait for.
  [ $((step % 20)) -eq 0 ] || [ $((step % 30)) -eq 0 ] ||
    grep -q "^draining: waiting for [0-9]* microbatch" err.txt || fail "not told what for: $(cat err.txt)"
  grep -q '"status":"interrupted"' run-$signal/metrics.jsonl || fail "not recorded as interrupted"
done

# SIGHUP is never a second request: where a terminal is closed, the shell and the kernel both send it.
for kind in "HUP 143" "INT 130"; do
  read -r first expected <<<"$kind"
  rm -rf asked
  "$gyre" train run.toml --out asked $endless >out.txt 2>err.txt &
  pid=$!
  wait_for_step asked 23 $pid
  kill -$first $pid
  while kill -0 $pid 2>/dev/null && ! grep -q "^stopping:" err.txt; do :; done
  kill -HUP $pid 2>/dev/null || true
  code_of $pid
  [ "$code" -eq "$expected" ] && grep -q '"status":"interrupted"' asked/metrics.jsonl || fail "exit $code after SIG$first and SIGHUP: $(cat err.txt)"
done

# A SIGHUP that is ignored at the start, as under nohup, stays ignored.
(trap '' HUP; exec "$gyre" train run.toml --out nohup --set run.updates=60 >out.txt 2>err.txt) &
pid=$!
wait_for_step nohup 5 $pid
kill -HUP $pid 2>/dev/null || true
code_of $pid
[ "$code" -eq 0 ] || fail "exit $code: an ignored SIGHUP was heeded"

# SIGUSR1 saves, and training goes on; also through a launcher, and without planned checkpoints.
for launcher in "" "launch -n 2 --"; do
  rm -rf asked
  "$gyre" $launcher train run.toml --out asked $endless --set run.checkpoint_every=0 --set run.eval_every=0 >out.txt 2>err.txt &
  pid=$!
  wait_for_step asked 23 $pid
  kill -USR1 $pid
  while kill -0 $pid 2>/dev/null && ! grep -q '"event":"checkpoint"' asked/metrics.jsonl; do read -rt 0.02 <> <(:) || true; done
  saved=$(sed -nE 's/.*"event":"checkpoint","step":([0-9]+).*/\1/p' asked/metrics.jsonl)
  [ "$(drained_at asked)" = "$saved" ] || fail "SIGUSR1 to '$launcher': saved at '$saved': $(tail -n 2 err.txt)"
  wait_for_step asked $((saved + 5)) $pid
  kill -TERM $pid
  code_of $pid
  [ "$code" -eq 143 ] || fail "exit $code after SIGUSR1 and SIGTERM: $(cat err.txt)"
done

# A SIGUSR1 that comes while libraries are loaded waits for the run.
"$gyre" train run.toml --out early --set run.updates=20 >out.txt 2>err.txt &
pid=$!
until [[ $(readlink /proc/$pid/exe) == */gyre-engine ]]; do kill -0 $pid 2>/dev/null || fail "ended: $(cat err.txt)"; done
kill -USR1 $pid
code_of $pid
[ "$code" -eq 0 ] || fail "exit $code after SIGUSR1 at the start: $(cat err.txt)"

# The second signal ends the run even if its messages block: the pipe is full, and nobody reads it.
mkfifo stuck
exec 9<>stuck
"$gyre" train run.toml --out twice $endless >/dev/null 2>stuck &
pid=$!
wait_for_checkpoint twice 20 $pid
for size in 1024 1; do dd if=/dev/zero of=stuck bs=$size count=70000 oflag=nonblock status=none 2>/dev/null || true; done
kill_again TERM $pid
code_of $pid
[ "$code" -eq 143 ] || fail "exit $code after the second SIGTERM"
exec 9<&-
"$gyre" eval twice --step 20 >/dev/null || fail "the earlier checkpoint is not whole"

# wait_for_words WORDS PID [FILE]: waits until the words are in FILE (default err.txt), or the process has ended.
wait_for_words() {
  while kill -0 "$2" 2>/dev/null && ! grep -qsE "$1" "${3:-err.txt}"; do read -rt 0.02 <> <(:) || true; done
}

# wait_for_reads N PID: waits until the process has made N more reads, or has ended.
wait_for_reads() {
  reads_now() { sed -n 's/^syscr: //p' "/proc/$1/io" 2>/dev/null || true; }
  local before reads
  before=$(reads_now "$2")
  while reads=$(reads_now "$2") && [ -n "$reads" ] && [ "$reads" -lt $((before + $1)) ]; do
    read -rt 0.02 <> <(:) || true
  done
}

# In an evaluation nothing is in flight, so there is nothing to wait for.
: >err.txt
"$gyre" train run.toml --out evaluating $endless --set run.eval_every=20 --set run.eval_batches=1000000 >/dev/null 2>err.txt &
pid=$!
wait_for_words '"event":"step","step":20,' $pid evaluating/metrics.jsonl
kill -TERM $pid
code_of $pid
[ "$code" -eq 143 ] || fail "exit $code after SIGTERM in an evaluation: $(cat err.txt)"
! grep "waiting for 0 " err.txt || fail "told to wait for nothing"

# The second signal also ends a run whose drain takes forever: a window of a million microbatches.
: >err.txt  # must contain no messages of another run
"$gyre" train run.toml --out long $endless --set pipeline.accumulate=1000000 >/dev/null 2>err.txt &
pid=$!
wait_for_words "^saves to" $pid
wait_for_reads 100 $pid  # reads of tokens: before the first microbatch there is nothing to drain
kill -TERM $pid
wait_for_words "^draining: waiting for" $pid
kill_again INT $pid
code_of $pid
[ "$code" -eq 130 ] || fail "exit $code after the second signal, SIGINT: $(tail -n 2 err.txt)"
! grep -q '"event":"end"' long/metrics.jsonl || fail "the drain was waited for"

# A worker that does not come back from an action is named; a drain that waits for it is given up, and the run continues
# from its last save. The first and the last worker read tokens, so it may be either. The learning rate is constant, so
# that it does not depend on the planned length, and there is no evaluation, which would read outside the workers.
steady="--set optimizer.decay=constant --set run.eval_every=0"
LD_PRELOAD=$faults GYRE_FAULT_READ=$work/disk "$gyre" train run.toml --out stuck-run --set pipeline.stall_seconds=0.2 \
  $endless $steady >/dev/null 2>err.txt &
pid=$!
wait_for_checkpoint stuck-run 20 $pid
mkfifo disk  # from here on reads hang
wait_for_words "^worker [02] has been inside [02]F[0-9]+ for" $pid
kill -TERM $pid
code_of $pid
rm disk
[ "$code" -eq 1 ] || fail "exit $code of a drain that is stuck: $(tail -n 3 err.txt)"
grep -qE "^worker [02] has been inside [02]F[0-9]+ for .*the run waits for it$" err.txt || fail "not named: $(cat err.txt)"
saved=$(sed -nE 's/.*"event":"checkpoint","step":([0-9]+).*/\1/p' stuck-run/metrics.jsonl | tail -n 1)
grep -qE "^gyre: the drain is given up: .*worker [02] inside [02]F[0-9]+.*the updates since step $saved are lost" err.txt ||
  fail "not given up: $(tail -n 3 err.txt)"
grep -q '"event":"end","status":"failed"' stuck-run/metrics.jsonl || fail "not recorded as failed"
last="--set run.updates=$((saved + 20))"
"$gyre" train --resume stuck-run $last >/dev/null 2>err.txt || fail "resume after a stuck drain: $(tail -n 1 err.txt)"
"$gyre" train run.toml --out whole $last $steady >/dev/null 2>&1
diff <(losses whole) <(losses stuck-run) >difference || fail "losses differ: $(head -n 3 difference)"

# A save whose disk does not answer is told, and goes on when it does.
LD_PRELOAD=$faults GYRE_FAULT_SYNC=$work/slow-disk "$gyre" train run.toml --out slow-run --set pipeline.stall_seconds=0.3 \
  $endless $steady >/dev/null 2>err.txt &
pid=$!
wait_for_checkpoint slow-run 20 $pid
mkfifo slow-disk  # from here on syncs hang
wait_for_words "^saving step [0-9]+ takes longer than 0.3 s \(stall_seconds\); does the disk of slow-run/checkpoints answer" $pid
exec 6<>slow-disk
kill -TERM $pid
code_of $pid
[ "$code" -eq 143 ] || fail "exit $code of a run with a slow disk: $(tail -n 3 err.txt)"
exec 6<&-
rm slow-disk

# A text that was cut off is told by the exit code, whatever its form.
for form in "" --json; do
  "$gyre" generate stuck-run --prompt verse --tokens 100000000 $form >out.txt 2>err.txt &
  pid=$!
  # Until it heeds SIGTERM. bash blocks that too, before it has become gyre.
  while kill -0 $pid 2>/dev/null && ! { grep -q gyre /proc/$pid/comm && grep -q 'SigBlk:.*4...$' /proc/$pid/status; } 2>/dev/null; do :; done
  kill -TERM $pid
  code_of $pid
  [ "$code" -eq 143 ] || fail "exit $code of generate $form after SIGTERM: $(cat err.txt)"
done

# Divergence has its own exit code.
code=0
"$gyre" train run.toml --out diverged --set optimizer.kind=adamw --set optimizer.lr=1e5 --set optimizer.clip=0 \
  >/dev/null 2>err.txt || code=$?
[ "$code" -eq 3 ] || fail "exit $code instead of 3 when a run diverges: $(tail -n 1 err.txt)"

# fails_for CODE WORDS COMMAND...: must exit with CODE within a minute, with one line that contains the words.
fails_for() {
  local expected=$1 words=$2
  shift 2
  code=0
  timeout -k 1 60 "$@" >out.txt 2>err.txt || code=$?
  [ "$code" -eq "$expected" ] || fail "exit $code instead of $expected: $*: $(tail -n 3 err.txt)"
  grep -qE "$words" err.txt || fail "no '$words' in: $(cat err.txt)"
  ! grep -qE "unexpected|frame #" err.txt || fail "not one clear line: $(cat err.txt)"
}
for kilobytes in 700000 1000000 1200000; do
  fails_for 1 "out of memory|of [0-9]+ threads only" prlimit --as=$((kilobytes * 1024)) \
    "$gyre" train run.toml --out limited --set pipeline.stages=5
  rm -rf limited
done
# Root may have any number of processes, so this limit needs another user.
if [ "$(id -u)" -eq 0 ]; then
  chmod a+rwx . && chmod -R a+rX . && chmod a+rx "$(dirname "$gyre")"
  as_nobody="env TMPDIR=$work setpriv --reuid=65534 --regid=65534 --clear-groups"
  if $as_nobody "$gyre" --version >/dev/null 2>&1; then
    for processes in 1 2 4; do
      fails_for 1 "threads only [0-9]+ can be started|cannot be started" $as_nobody prlimit --nproc=$processes \
        "$gyre" train run.toml --out limited
      rm -rf limited
    done
    # No rank waits for another that cannot start a thread, and none blames the network. Rank 0 may find only that the
    # other has gone.
    for processes in 1 3 8 11 13 14; do
      code=0
      timeout 60 $as_nobody prlimit --nproc=$processes "$gyre" launch -n 2 -- train run.toml --out limited \
        --set run.updates=4 >out.txt 2>err.txt || code=$?
      [ "$code" -eq 1 ] && ! grep -q firewall err.txt &&
        grep -qE "^gyre: .*(started: .* $processes of this user \(ulimit -u\)|is gone: the connection is closed)" err.txt ||
        fail "exit $code of two ranks with $processes processes: $(cat err.txt)"
      rm -rf limited
    done
  fi
fi

# A limit on the file size acts like a full disk: no signal, one line, nothing half-written.
fails_for 4 "cannot be written: File too large" prlimit --fsize=90000 "$gyre" train run.toml --out full
[ -z "$(find full -name '*.tmp*')" ] || fail "half-written files: $(find full -name '*.tmp*')"

# start_study SETTINGS: starts a study of one endless run in the background; sets pid, run, and trainer, the run's
# process.
start_study() {
  cat run.toml - >study.toml <<TOML
[study]
stages = [3]
learning_rates = [1e-3]
smooth = 1
[[study.method]]
name = "AdamW"
set = ["run.updates=100000", "optimizer.kind=adamw"$1]
TOML
  rm -rf study
  "$gyre" study study.toml --out study >out.txt 2>err.txt &
  pid=$!
  while kill -0 $pid 2>/dev/null && ! log=$(grep -rl --include='*.log' "^saves to" study 2>/dev/null); do
    read -rt 0.05 <> <(:) || true
  done
  run=${log%.log}
  trainer=$(cat /proc/$pid/task/*/children | tr -d ' ')
}

# ends_with_its_run: the study exits as SIGTERM demands, and no process holds its run's directory any more.
ends_with_its_run() {
  code_of $pid
  [ "$code" -eq 143 ] || fail "exit $code of a study after SIGTERM: $(cat err.txt)"
  exec 7<>"$run/.lock"
  flock -w 20 7 || fail "a run goes on without its study"
  exec 7<&-
}

# A study passes signals on: SIGUSR1 makes its runs save and go on, the first of the others lets them drain and save.
start_study ', "run.eval_every=0", "run.checkpoint_every=0"'
wait_for_step "$run" 3 $pid
kill -USR1 $pid
while kill -0 $pid 2>/dev/null && ! grep -q '"event":"checkpoint"' "$run/metrics.jsonl"; do read -rt 0.02 <> <(:) || true; done
saved=$(sed -nE 's/.*"event":"checkpoint","step":([0-9]+).*/\1/p' "$run/metrics.jsonl")
[ -n "$saved" ] || fail "SIGUSR1 to a study: nothing was saved: $(cat err.txt)"
grep -q "^saving: the runs under way drain, save and go on" err.txt || fail "SIGUSR1 to a study is not answered: $(cat err.txt)"
wait_for_step "$run" $((saved + 5)) $pid
kill -TERM $pid
ends_with_its_run
grep -q '"status":"interrupted"' "$run/metrics.jsonl" || fail "the run of a study was not drained"

# The second one ends them, here during a drain that takes forever.
start_study ', "pipeline.accumulate=1000000"'
wait_for_reads 100 "$trainer"
kill -TERM $pid
wait_for_words "^draining: waiting for" $pid "$run.log"
kill_again TERM $pid
ends_with_its_run
! grep -q '"event":"end"' "$run/metrics.jsonl" || fail "the run's drain was waited for"

# A hang-up while the program is being loaded ends it like a later one; nothing is left behind.
"$gyre" train run.toml --out early $endless >out.txt 2>err.txt &
pid=$!
until [[ $(readlink /proc/$pid/exe) == */gyre-engine ]]; do kill -0 $pid 2>/dev/null || fail "ended: $(cat err.txt)"; done
kill -HUP $pid
code_of $pid
[ "$code" -eq 143 ] || fail "exit $code after an early SIGHUP: $(cat err.txt)"

# A stopped prepare removes what it has written.
yes "the same line again and again" | "$gyre" prepare - --out endless-data >out.txt 2>err.txt &
pid=$!
until [ -s endless-data.preparing/train.bin ]; do kill -0 $pid 2>/dev/null || fail "prepare ended: $(cat err.txt)"; read -rt 0.02 <> <(:) || true; done
kill -TERM $pid
code_of $pid
[ "$code" -eq 143 ] || fail "exit $code after SIGTERM to prepare: $(cat err.txt)"
grep -q "stopped; nothing was kept" err.txt || fail "not told: $(cat err.txt)"
[ ! -e endless-data ] && [ ! -e endless-data.preparing ] || fail "prepare left something"

# So do a stopped import and a stopped export, here on a disk that does not answer at first.
"$gyre" train run.toml --out exported --set run.updates=1 >/dev/null 2>&1
"$gyre" export exported --out model >/dev/null
for kind in "INT 130 import model" "TERM 143 export exported"; do
  read -r signal expected command from <<<"$kind"
  mkfifo disk
  LD_PRELOAD=$faults GYRE_FAULT_SYNC=$work/disk "$gyre" $command $from --out made >out.txt 2>err.txt &
  pid=$!
  until compgen -G "made.*ing" >/dev/null; do kill -0 $pid 2>/dev/null || fail "$command ended: $(cat err.txt)"; read -rt 0.02 <> <(:) || true; done
  kill -$signal $pid
  until ! grep -qE '^S(ig|hd)Pnd:.*[1-9a-f]' /proc/$pid/status; do read -rt 0.02 <> <(:) || true; done  # it has been taken
  read -rt 0.2 <> <(:) || true
  exec 9<>disk
  rm disk
  code_of $pid
  exec 9>&-
  [ "$code" -eq "$expected" ] || fail "exit $code after SIG$signal to $command: $(cat err.txt)"
  [ "$(cat err.txt)" = "gyre: stopped; nothing was kept" ] || fail "$command: not one line: $(cat err.txt)"
  [ ! -s out.txt ] && ! compgen -G "made*" >/dev/null || fail "$command left something"
done

# Limits under which libraries would crash give one line.
for limit in "-s 100" "-n 5"; do
  code=0
  (ulimit $limit; exec "$gyre" train run.toml --out limited) >out.txt 2>err.txt || code=$?
  [ "$code" -eq 1 ] || fail "exit $code under ulimit $limit: $(cat err.txt)"
  grep -q "raise the limit (ulimit ${limit% *})" err.txt || fail "ulimit $limit: $(cat err.txt)"
done
[ ! -e limited ] || fail "a refused run left something behind"
