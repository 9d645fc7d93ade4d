# A run's directory on a network file system: rank 0 has it locally, rank 1 sees it through SFTP. Saving, a killed rank
# and continuing give the bits of one process. Needs root, FUSE and sshfs; skipped (exit 77) without them.
here=$(dirname "$(realpath "$0")")
skip() { echo "SKIPPED: $*"; exit 77; }
server=/usr/lib/openssh/sftp-server
for program in sshfs socat fusermount "$server"; do
  command -v "$program" >/dev/null || skip "there is no $program"
done
[ "$(id -u)" -eq 0 ] && [ -w /dev/fuse ] || skip "mounting needs root and /dev/fuse"
source "$here/common.sh"
tidy() {
  kill -KILL "${pids[@]}" 2>/dev/null || true
  fusermount -u -z "$work/seen" 2>/dev/null || true
  kill "$served" 2>/dev/null || true
  rm -rf "$work"
}
trap tidy EXIT
pids=() served=
mkdir kept seen
for try in 1 2 3 4 5; do
  port=$((20000 + RANDOM % 10000))
  socat TCP-LISTEN:$port,bind=127.0.0.1,fork EXEC:$server >/dev/null 2>&1 &
  served=$!
  for wait in $(seq 50); do
    sshfs -o directport=$port "127.0.0.1:$work/kept" "$work/seen" 2>mount.log && break 2
    kill -0 "$served" 2>/dev/null || break
    sleep 0.1
  done
done
mountpoint -q seen || skip "sshfs does not mount: $(cat mount.log)"

# start WORDS...: starts rank 0 in kept and rank 1 in seen; sets pids, messages go to err.RANK.
start() {
  local rank place port=$((20000 + RANDOM % 10000))
  for rank in 0 1; do
    [ $rank -eq 0 ] && place=kept || place=seen
    (cd $place && exec env RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      "$gyre" train ../run.toml --set data.tokens=../tokens --job shared --out run "$@") >out.$rank 2>err.$rank &
    pids[rank]=$!
  done
}
"$gyre" train run.toml --out alone >/dev/null 2>&1

start
for rank in 0 1; do
  code_of "${pids[rank]}"
  [ "$code" -eq 0 ] || fail "rank $rank: exit $code: $(tail -n 3 err.0 err.1)"
done
[ -e kept/run/checkpoints/step-00000120/model-00002-of-00002.safetensors ] || fail "rank 1 wrote nothing through the network"
same_run alone kept/run "over a network file system"

rm -r kept/run
long=(--set run.updates=1200 --set run.eval_every=0 --set run.checkpoint_every=100)
"$gyre" train run.toml "${long[@]}" --out long >/dev/null 2>&1
start "${long[@]}"
until [ -e kept/run/checkpoints/step-00000200/manifest.json ]; do
  kill -0 "${pids[0]}" 2>/dev/null || fail "it ended by itself: $(cat err.0 err.1)"
  sleep 0.05
done
kill -KILL "${pids[1]}"
code_of "${pids[1]}"
code_of "${pids[0]}"
[ "$code" -eq 1 ] || fail "exit $code of rank 0 after the other was killed"
grep -q "rank 1" err.0 || fail "who has gone is not said: $(cat err.0)"
start "${long[@]}" --resume
for rank in 0 1; do
  code_of "${pids[rank]}"
  [ "$code" -eq 0 ] || fail "rank $rank after the kill: exit $code: $(tail -n 3 err.0 err.1)"
done
same_tensors {long,kept/run}/checkpoints/step-00001200 "after a kill, over a network file system"
