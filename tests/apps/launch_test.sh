# gyre launch: command line, exit codes, signals, restarts. kill -9 of a rank is reported by name, kill -9 of the
# launcher leaves no process, and no directory is left behind. In the last part a script stands in for the engine.
source_of_gyre=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

mkdir temporary
export TMPDIR=$work/temporary
nothing_left() { [ -z "$(ls temporary)" ] || fail "left behind: $(find temporary)"; }

# Bad input: one line, exit 2, nothing is started.
for words in "" "train run.toml" "train run.toml --out x" "--"; do
  refuses "give the command after --" "$gyre" launch -n 2 $words
done
refuses "'eval' does not run as several processes; train and measure-links do" "$gyre" launch -n 2 -- eval run
refuses "'dance' does not run as several processes; train and measure-links do" "$gyre" launch -n 2 -- dance
refuses "gyre launch needs -n: how many processes" "$gyre" launch -- train run.toml
refuses "-n is 0; give 1 to 4096" "$gyre" launch -n 0 -- train run.toml
refuses "-n is -1; give 1 to 4096" "$gyre" launch -n -1 -- train run.toml
refuses "-n is 'two'; give a whole number" "$gyre" launch -n two -- train run.toml
refuses "--max-restarts is -1; give 0 to" "$gyre" launch -n 2 --max-restarts -1 -- train run.toml
refuses "unknown flag --step; see gyre train --help" "$gyre" launch -n 2 -- train run.toml --step 3
refuses "did you mean --max-restarts" "$gyre" launch -n 2 --max-restart 3 -- train run.toml
refuses "give a CONFIG.toml, or --resume RUN" "$gyre" launch -n 2 -- train
refuses "--check needs only one process" "$gyre" launch -n 2 -- train --check run.toml
refuses "--help-config needs only one process" "$gyre" launch -n 2 -- train --help-config
refuses "--log-dir: text.txt cannot be made" "$gyre" launch -n 2 --log-dir text.txt -- train run.toml
refuses "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE are not set, but RANK is" env RANK=1 "$gyre" launch -n 2 -- train run.toml
refuses "itself started as rank 1 of 2, by mpirun" env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 \
  OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 "$gyre" launch -n 2 -- train run.toml
"$gyre" launch --help | grep -q -- "-- train" || fail "no help"
"$gyre" launch -n 2 -- train --help | grep -q -- "--resume" || fail "no help of train"

# If nothing can be written under TMPDIR, the ranks are not started.
said=$( (ulimit -f 0; "$gyre" launch -n 2 -- train run.toml --out unmet 2>&1 >/dev/null; echo "exit $?") )
grep -q "cannot be written: File too large; .*set TMPDIR to another place" <<<"$said" && [ "${said##*$'\n'}" = "exit 4" ] || fail "a full TMPDIR: $said"
! grep -q terminate <<<"$said" || fail "a full TMPDIR: $said"
[ ! -e unmet ] || fail "a run is left that has not begun"
nothing_left

# A TMPDIR that is set and empty is none: nothing is left in the working directory.
TMPDIR= "$gyre" launch -n 2 -- train run.toml --out unmet --set run.updates=1 >/dev/null 2>&1 &
pid=$!
while kill -0 $pid 2>/dev/null; do ! ls -d gyre-launch-* >/dev/null 2>&1 || fail "TMPDIR= is the working directory"; done
code_of $pid
[ "$code" -eq 0 ] || fail "exit $code with an empty TMPDIR"

# children_of PID: the child processes, which its only thread started.
children_of() { cat "/proc/$1/task/$1/children"; }

# The ranks make the same run as train.
"$gyre" train run.toml --out alone >/dev/null 2>&1
for ranks in 1 2; do
  "$gyre" launch -n $ranks -- train run.toml --out launched-$ranks >out.txt 2>err.txt || fail "exit $?: $(cat err.txt)"
  same_run alone launched-$ranks "under gyre launch -n $ranks"
  grep -q "^finished at step 120" out.txt && grep -q "^step 120/120" err.txt || fail "not its output: $(cat out.txt err.txt)"
done
refuses "launched-2: a run is here already" "$gyre" launch -n 2 --max-restarts 3 -- train run.toml --out launched-2
# A run that is there already is not continued by a restart either: a rank that is killed at once ends before rank 0 has
# looked.
before=$(find launched-2 -type f ! -name .lock -exec sha256sum {} + | sort)
"$gyre" launch -n 2 --max-restarts 1 -- train run.toml --out launched-2 --set optimizer.lr=1e-3 >out.txt 2>err.txt &
pid=$!
until read -r -a ranks <<<"$(children_of $pid)" && [ "${#ranks[@]}" -eq 2 ]; do kill -0 $pid || fail "ended: $(cat err.txt)"; done
kill -KILL "${ranks[1]}"
code_of $pid
[ "$code" -eq 2 ] && grep -q "launched-2: a run is here already" err.txt || fail "exit $code after a rank was killed at once: $(cat err.txt)"
[ "$before" = "$(find launched-2 -type f ! -name .lock -exec sha256sum {} + | sort)" ] || fail "a restart has changed another run"
ends 2 "the schedule has 3 workers; start at most as many processes as there are workers, or make more workers" "$gyre" launch -n 4 -- train run.toml --out many
ends 3 "" "$gyre" launch -n 2 --max-restarts 3 -- train run.toml --out diverged --set optimizer.kind=adamw \
  --set optimizer.lr=1e5 --set optimizer.clip=0
# On a full disk another attempt would only make the same updates once more. Only rank 0 has something to say.
code=0
(ulimit -f 90; trap '' XFSZ; exec "$gyre" launch -n 3 --max-restarts 3 -- train run.toml --out full) >out.txt 2>err.txt || code=$?
[ "$code" -eq 4 ] && [ "$(grep -c '^gyre: ' err.txt)" -eq 1 ] && grep -q '^gyre: .*step 20 was not saved' err.txt || fail "exit $code on a full disk: $(cat err.txt)"

# Measured links between ranks: one class if all are on one host, in a file that a simulation accepts.
refuses "needs several ranks: gyre launch -n 2 -- measure-links" "$gyre" measure-links
refuses "unknown flag --step" "$gyre" launch -n 2 -- measure-links --step
"$gyre" launch -n 2 -- measure-links --help | grep -q "host by host" || fail "no help of measure-links"
"$gyre" launch -n 2 -- measure-links --out measured.toml >out.txt || fail "measure-links: exit $?"
[ "$(grep -c '^\[links' measured.toml)" -eq 1 ] && grep -q '^workers = 2' measured.toml || fail "not one class: $(cat measured.toml)"
grep -q '^2 ranks on 1 host$' out.txt && grep -q '^host: ' out.txt || fail "not told: $(cat out.txt)"
"$gyre" simulate alone/config.toml --set pipeline.stages=2 --costs alone --cluster measured.toml >out.txt 2>&1 && fail "costs of 3 stages were taken for 2"
grep -q "the costs are of 3 stages and the schedule has 2" out.txt || fail "$(cat out.txt)"
"$gyre" train run.toml --out two --set pipeline.stages=2 --set run.updates=4 >/dev/null 2>&1
"$gyre" simulate two/config.toml --costs two --cluster measured.toml | grep -q '^host: 2 links' || fail "the measured cluster is not simulated"
nothing_left

# start_run WORDS: starts two ranks of a long run in the background and waits until it has made some updates; sets pid
# and ranks.
start_run() {
  rm -rf long
  "$gyre" launch -n 2 --max-restarts 3 -- train run.toml --out long --set run.updates=100000 "$@" >out.txt 2>err.txt &
  pid=$!
  wait_for_step long 23 $pid
  read -r -a ranks <<<"$(children_of $pid)"
  [ "${#ranks[@]}" -eq 2 ] || fail "not two ranks: ${ranks[*]}: $(cat err.txt)"
}

# A signal drains and saves, whether only the launcher gets it or its ranks as well. A SIGHUP that follows, as where a
# terminal is closed, is the same request.
for kind in "INT 130 launcher" "TERM 143 all" "HUP 143 launcher"; do
  read -r signal expected who <<<"$kind"
  start_run
  [ $who = launcher ] || kill -$signal "${ranks[@]}"
  kill -$signal $pid
  while kill -0 $pid 2>/dev/null && ! grep -q "^stopping:" err.txt; do :; done
  kill -HUP $pid 2>/dev/null || true
  code_of $pid
  [ "$code" -eq "$expected" ] || fail "exit $code after SIG$signal to $who: $(cat err.txt)"
  grep -q '"status":"interrupted"' long/metrics.jsonl || fail "not drained after SIG$signal to $who: $(cat err.txt)"
done

# A restart continues the run. Where it is gone, as on a disk that was unmounted, none begins in its place.
start_run
mv long away
kill -KILL "${ranks[1]}"
code_of $pid
[ "$code" -eq 2 ] && grep -q "^gyre: long: the run that has begun here is gone" err.txt || fail "exit $code without the run: $(cat err.txt)"
[ ! -e long ] || fail "a run has begun again"
rm -r away
nothing_left

# A run that is done is not started again because its result cannot be printed.
"$gyre" launch -n 2 --max-restarts 3 -- train run.toml --out unprinted --set run.updates=4 2>err.txt >&- && fail "no exit code"
[ "$(grep -c '^gyre: ' err.txt)" -eq 1 ] && grep -q '^gyre: the result cannot be written to standard output: it is closed' err.txt ||
  fail "a closed standard output: $(cat err.txt)"
code=0
"$gyre" launch -n 2 --max-restarts 3 -- measure-links --out again.toml >/dev/full 2>err.txt || code=$?
[ "$code" -eq 1 ] && [ "$(grep -c '^gyre: ' err.txt)" -eq 1 ] && grep -q 'standard output: No space left' err.txt ||
  fail "exit $code with a full standard output: $(cat err.txt)"
nothing_left

# The second signal kills.
start_run --set run.eval_every=0
kill -STOP "${ranks[1]}"
kill -TERM $pid
until grep -q "^stopping:" err.txt; do kill -0 $pid 2>/dev/null || fail "ended: $(cat err.txt)"; read -rt 0.02 <> <(:) || true; done
kill_again TERM $pid
code_of $pid
[ "$code" -eq 143 ] || fail "exit $code after the second SIGTERM: $(cat err.txt)"
nothing_left

# The stand-in reports that it runs, and waits for its end.
mkdir bin
cp "$gyre" bin/gyre
cat >bin/gyre-engine <<'SCRIPT'
#!/bin/bash
trap 'exit 143' TERM
trap 'exit 1' USR2
echo "rank $GYRE_RANK: $*" >>"$GYRE_TEST_NOTES"
echo "rank $GYRE_RANK is here" >&2
mkfifo "$GYRE_STORE/$GYRE_RANK"
while :; do read -r _ <>"$GYRE_STORE/$GYRE_RANK"; done
SCRIPT
chmod +x bin/gyre-engine
export GYRE_TEST_NOTES=$work/notes

# start_ranks FLAGS: starts three ranks in the background; sets pid.
start_ranks() {
  : >notes
  bin/gyre launch -n 3 "$@" -- train run.toml --out several >out.txt 2>err.txt &
  pid=$!
  until [ "$(wc -l <notes)" -eq 3 ]; do
    kill -0 $pid 2>/dev/null || fail "ended: $(cat err.txt)"
    read -rt 0.02 <> <(:) || true
  done
}
# all_gone PIDS: waits until all of these processes are gone.
all_gone() {
  for process in "$@"; do
    while [ -e "/proc/$process" ] && ! grep -q "^State:.Z" "/proc/$process/status" 2>/dev/null; do
      read -rt 0.02 <> <(:) || true
    done
  done
}

start_ranks --log-dir logs
[ "$(sort notes)" = "$(for rank in 0 1 2; do echo "rank $rank: train run.toml --out several"; done)" ] || fail "$(cat notes)"
grep -qx "rank 0 is here" err.txt && grep -qx "rank 1 is here" logs/rank-1.log && grep -qx "rank 2 is here" logs/rank-2.log ||
  fail "output of ranks: $(cat err.txt) $(head logs/*)"
kill -TERM $pid
code_of $pid
[ "$code" -eq 143 ] || fail "exit $code after SIGTERM: $(cat err.txt)"
nothing_left

# A killed rank is named, with its last message, even if the others have failed since.
start_ranks
read -r -a ranks <<<"$(children_of $pid)"
kill -KILL "${ranks[1]}"
kill -USR2 "${ranks[0]}" "${ranks[2]}"
code_of $pid
[ "$code" -eq 1 ] || fail "exit $code after a rank was killed: $(cat err.txt)"
log=$(ls temporary/*/rank-1.log)
tail -n 1 err.txt | grep -qxF "gyre: rank 1 was killed by SIGKILL: rank 1 is here ($work/$log)" ||
  fail "not told: $(cat err.txt)"
all_gone "${ranks[@]}"
rm -r temporary/*

# kill -9 of the launcher leaves no process.
start_ranks
read -r -a ranks <<<"$(children_of $pid)"
[ "${#ranks[@]}" -eq 3 ] || fail "not three ranks: ${ranks[*]}"
kill -KILL $pid
code_of $pid
all_gone "${ranks[@]}"

# The commands of the guide can be started.
printf '#!/bin/bash\necho "$*" >>"$GYRE_TEST_NOTES"\n' >bin/gyre-engine
ln -s "$source_of_gyre/examples" examples
mkdir -p runs/novel
: >notes
commands=$(sed -n 's/^\(srun \(--[^ ]* \)*\)*gyre launch/bin\/gyre launch/p' "$source_of_gyre/docs/processes.md")
while read -r line; do
  eval "$line" >out.txt 2>err.txt </dev/null || fail "of the guide: $line: $(cat err.txt)"
done <<<"$commands"
[ "$(wc -l <<<"$commands")" -eq 5 ] && [ "$(wc -l <notes)" -eq 12 ] || fail "not what the guide starts: $(cat notes)"
