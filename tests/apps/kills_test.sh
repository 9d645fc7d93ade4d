# Kills random ranks of a run under gyre launch at random moments, GYRE_KILLS times. Each time the run is started again;
# it must end with the bytes of an undisturbed run. GYRE_KILLS_SEED=n draws other kills.
source "$(dirname "$0")/common.sh"

wanted=${GYRE_KILLS:-10}
RANDOM=${GYRE_KILLS_SEED:-1}
children_of() { cat "/proc/$1/task/$1/children" 2>/dev/null || true; }

"$gyre" train run.toml --out alone >/dev/null 2>&1
# unnamed: the checkpoint of this run that does not have its final name yet. One left by a killed save stays for a
# while.
unnamed() { ls -di run-$run/checkpoints/.tmp-* 2>/dev/null || true; }
is_saving() { local now && now=$(unnamed) && [ -n "$now" ] && [ "$now" != "$left" ]; }
killed=0 saves=0 left=""
for ((run = 1; killed < wanted; ++run)); do
  "$gyre" launch -n 2 --max-restarts 100000 -- train run.toml --out run-$run >out.txt 2>err.txt &
  pid=$!
  # In one of four cases kills as soon as the ranks exist, in one while a checkpoint is written, and otherwise after
  # some update; always a little later.
  while [ $killed -lt "$wanted" ] && kill -0 $pid 2>/dev/null; do
    case $((RANDOM % 4)) in
      0) for ((spin = RANDOM % 5000; spin > 0; --spin)); do :; done ;;
      1) until is_saving || ! kill -0 $pid 2>/dev/null; do :; done ;;
      *)
        wait_for_step run-$run $((RANDOM % 100)) $pid
        for ((spin = RANDOM % 5000; spin > 0; --spin)); do :; done
        ;;
    esac
    read -r -a ranks <<<"$(children_of $pid)"
    [ "${#ranks[@]}" -eq 2 ] || continue  # the ranks are still being started
    victim=${ranks[RANDOM % 2]}
    kill -KILL "$victim" 2>/dev/null || continue
    killed=$((killed + 1))
    ! is_saving || saves=$((saves + 1))
    left=$(unnamed)
    while [[ " $(children_of $pid) " == *" $victim "* ]]; do read -rt 0.01 <> <(:) || true; done
  done
  code_of $pid
  [ "$code" -eq 0 ] || fail "run $run: exit $code after $killed kills in all: $(tail -n 3 err.txt)"
  same_run alone run-$run "run $run, $killed kills in all, seed ${GYRE_KILLS_SEED:-1}"
  echo "run $run: $(grep -c '^gyre: rank . was killed by SIGKILL.*; restart' err.txt) restarts; $killed kills in all, $saves of them amid a save"
  rm -r run-$run
done
