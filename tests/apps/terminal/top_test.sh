# gyre top on a terminal provided by tmux: it shows the stage that was made slow, in one process and in two, follows the
# size of the terminal, scrolls, and restores the terminal. Run by scripts/test-top.
source "$(dirname "$0")/../common.sh"

tmux=(tmux -f /dev/null -S "$work/tmux")
cleanup() {
  "${tmux[@]}" kill-server 2>/dev/null || true
  [ -z "${run_pid:-}" ] || kill -9 "$run_pid" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

screen() { "${tmux[@]}" capture-pane -p -t top; }
# shows PATTERN [SECONDS]: waits until the pattern is on the screen.
shows() {
  local end=$((SECONDS + ${2:-30}))
  until screen | grep -qE -- "$1"; do
    [ $SECONDS -lt $end ] || fail "the screen does not show $1: $(screen)"
    sleep 0.2
  done
}
keys() { "${tmux[@]}" send-keys -t top "$@"; }

# The last stage has only the head, whose vocabulary makes it several times as costly as all others together.
slow=(--set model.layers=2 --set pipeline.schedule=pipedream --set pipeline.stages=4 --set model.vocabulary=16384
  --set run.updates=1000000 --set run.eval_every=0 --set run.checkpoint_every=0)

start() {
  "$@" >out.txt 2>err.txt &
  run_pid=$!
  wait_for_step run 5 $run_pid
  kill -0 $run_pid 2>/dev/null || fail "the run has ended: $(cat err.txt)"
}

# looks_right: the slow stage's worker is busy, the one before waits for it, and so on.
looks_right() {
  "$gyre" top --json run >top.json
  python3 - <<'PY'
import json, sys
live = json.load(open("top.json"))["live"]
busy = {w["worker"]: w["busy"] for w in live["workers"]}
waits = {w["worker"]: w["waits"] for w in live["workers"]}
most = {w: max(x, key=lambda y: y["share"])["worker"] if x else None for w, x in waits.items()}
right = len(busy) == 4 and all(busy[3] > 1.5 * busy[w] for w in range(3)) and most[0] == 1 and most[1] == 2 and most[2] == 3
sys.exit(0 if right else f"busy {busy}, waits {waits}")
PY
}

check_screen() {
  "${tmux[@]}" new-session -d -s top -x "$1" -y "$2" "exec bash --norc"
  keys "PS1='shell: '; clear" Enter
  keys "echo before; '$gyre' top run; echo left with \$?" Enter
  shows 'update [0-9]+ of 1000000'
  local end=$((SECONDS + 30))
  until looks_right 2>why.txt; do [ $SECONDS -lt $end ] || fail "$(cat why.txt)"; sleep 0.5; done
  shows '^ +2 .*worker 3 [0-9]+%'
  shows '^ +3 .*%'
  shows 'tokens/s'
  shows 'delay by stage +0:[0-9.]+ +1:'
  shows 'memory'
  shows 'q quits'
  ! screen | grep -q before || fail "the screen is not its own"
  [ "$(screen | sed -n '$=')" -eq "$2" ] || fail "not $2 lines"
}

start "$gyre" train run.toml --out run "${slow[@]}"
check_screen 80 24
cp /dev/null captured.txt; screen >captured.txt
"${tmux[@]}" resize-window -t top -x 120 -y 12
shows 'workers 1 to [0-9]+ of 4'
! screen | grep -qE '^ +3 .*%' || fail "four workers in twelve lines: $(screen)"
keys End
shows '^ +3 .*%'
keys Home
shows '^ +0 .*%'
"${tmux[@]}" resize-window -t top -x 200 -y 50
shows '^ +3 .*%'
keys q
shows 'left with 0'
shows '^before'  # what was on the screen before is restored
keys "'$gyre' top run; echo left with \$?" Enter
shows 'q quits'
keys C-c
shows 'left with 130'
keys "echo typed" Enter
shows '^typed'  # the terminal echoes again
"${tmux[@]}" kill-session -t top

# A killed run is reported as killed.
kill -9 $run_pid; wait $run_pid 2>/dev/null || true
"${tmux[@]}" new-session -d -s top -x 80 -y 24 "exec '$gyre' top run"
shows 'not running: last seen training'
"${tmux[@]}" kill-session -t top

rm -rf run
start "$gyre" launch -n 2 -- train run.toml --out run "${slow[@]}"
check_screen 80 24
shows 'worker process busy'
shows '^memory +0: .*at most'
shows '^ +1: [0-9.]+ MiB, at most'
kill -INT $run_pid; wait $run_pid || true
shows 'interrupted .* ago' 60
run_pid=
keys q
echo "gyre top showed the slow stage in one process and in two"
cat captured.txt
