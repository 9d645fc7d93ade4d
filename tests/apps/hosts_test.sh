# Two hosts: network namespaces with their own host names, joined by a veth pair, and by a line that delays and loses
# packets. A slow or lossy line changes no bit; a cut one is reported in time, and all ranks end. Needs root; skipped
# (exit 77) without it.
here=$(dirname "$(realpath "$0")")
skip() { echo "SKIPPED: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "there is no ip (iproute2)"
a=gyre-a-$$ b=gyre-b-$$
ip netns add $a 2>/dev/null || skip "no network namespace can be made here"
source "$here/common.sh"

# Cleans up everything, whatever happens.
tidy() {
  local process
  for process in $(ip netns pids $a 2>/dev/null) $(ip netns pids $b 2>/dev/null) ${line:-}; do
    kill -KILL "$process" 2>/dev/null || true
  done
  ip netns del $a 2>/dev/null || true
  ip netns del $b 2>/dev/null || true
  rm -rf "$work"
}
trap tidy EXIT
ip netns add $b
ip link add veth netns $a type veth peer name veth netns $b || skip "no veth pair can be made here"
ip -n $a address add 10.77.1.1/24 dev veth
ip -n $b address add 10.77.1.2/24 dev veth
for host in $a $b; do
  ip -n $host link set lo up
  ip -n $host link set veth up
done

# on_host RANK COMMAND...: runs the command on host-a (0) or host-b (1); sets pids[RANK], messages go to err.RANK.
on_host() {
  local rank=$1 namespace=$a host=host-a
  shift
  [ $rank -eq 0 ] || namespace=$b host=host-b
  ip netns exec $namespace unshare --uts sh -c 'hostname "$1" && shift && exec "$@"' - $host "$@" >out.$rank 2>err.$rank &
  pids[rank]=$!
}
# start MASTER WORDS...: starts a rank on each host by hand.
start() {
  local master=$1 rank
  shift
  port=$((20000 + RANDOM % 10000))
  for rank in 0 1; do
    on_host $rank env RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=$master MASTER_PORT=$port \
      "$gyre" train run.toml --job hosts "$@"
  done
}
# all_end CODE
all_end() {
  for rank in 0 1; do
    code_of "${pids[rank]}"
    [ "$code" -eq "$1" ] || fail "rank $rank: exit $code instead of $1: $(tail -n 3 err.0 err.1)"
  done
  [ -z "$(ip netns pids $a)$(ip netns pids $b)" ] || fail "a process is left behind"
}
# same_bits RUN WHAT [ALONE]
same_bits() {
  local one=${3:-alone}
  diff <(losses "$one") <(losses "$1") >difference || fail "$2: losses differ: $(head -n 3 difference)"
  same_tensors {"$one","$1"}/checkpoints/step-00000030 "$2"
  sed -nE "s/.*(finished at step.*)/$2: \1/p" out.0
}

sed -i 's/^updates = .*/updates = 30/; s/^checkpoint_every = .*/checkpoint_every = 10/' run.toml
"$gyre" train run.toml --out alone >out.0 2>&1
same_bits alone "one process"

# By default connections use loopback, which does not reach another host.
start 10.77.1.1 --out refused
all_end 2
grep -qE "^gyre: rank 1 \(process [0-9]+ on host-b\): it cannot be reached from host-a over 127.0.0.1; give all ranks --interface" \
  err.0 || fail "not refused: $(tail -n 1 err.0)"
[ ! -s err.1 ] || fail "rank 1 speaks: $(cat err.1)"

start 10.77.1.1 --out veth --interface veth
all_end 0
same_bits veth "two hosts"
grep -qxF "network    ranks meet at 10.77.1.1:$port (open on all addresses of that host); connections: rank 0 at 10.77.1.1, rank 1 at 10.77.1.2" \
  err.0 || fail "not said: $(grep network err.0)"

# Each host has its own run directory with the same name, as on disks that are not shared.
mkdir on-host-a on-host-b
own() {
  local rank hosts=(host-a host-b)
  port=$((20000 + RANDOM % 10000))
  for rank in 0 1; do
    cp run.toml on-${hosts[rank]}/
    on_host $rank env RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.1.1 MASTER_PORT=$port \
      env -C on-${hosts[rank]} "$gyre" train run.toml --job hosts --set data.tokens="$work/tokens" --interface veth \
      --set run.eval_every=10 --out own "$@"
  done
}
own
all_end 2
grep -qE "^gyre: rank 1 \(process [0-9]+ on host-b\): own is not the directory .* --set run.shared_directory=false" err.0 ||
  fail "not refused: $(tail -n 1 err.0)"
own --set run.shared_directory=false --set optimizer.decay=constant --set run.updates=20
all_end 0
grep -qxF "directories rank 0 $work/on-host-a/own on host-a, rank 1 $work/on-host-b/own on host-b" err.0 ||
  fail "not said: $(grep directories err.0)"
own --set run.shared_directory=false --set optimizer.decay=constant --resume
all_end 0
# Another number of hosts: missing files are named with the host that has them; after copying them, the run continues.
cp -r on-host-a/own elsewhere
ends 2 "elsewhere/checkpoints/step-00000030: model-00002-of-00002.safetensors, optimizer-00002-of-00002.safetensors are \
not here; host-b has them in $work/on-host-b/own/checkpoints/step-00000030: copy them into $work/elsewhere/checkpoints/step-00000030 \
here" "$gyre" train --resume elsewhere --set run.updates=40
refuses "host-b has it in $work/on-host-b/own/checkpoints/step-00000030" "$gyre" eval elsewhere
refuses "own: has only parts of checkpoints; the run's own directory is $work/on-host-a/own on host-a" \
  "$gyre" eval on-host-b/own
cp on-host-b/own/checkpoints/step-00000030/* elsewhere/checkpoints/step-00000030/
"$gyre" eval elsewhere >/dev/null
"$gyre" train run.toml --out steady --set optimizer.decay=constant --set run.eval_every=10 >steady.log 2>&1
cp -r elsewhere own
same_bits own "two hosts with their own directories, resumed" steady

torchrun=(/usr/bin/python3 -m torch.distributed.run)
if "${torchrun[@]}" --help >/dev/null 2>&1; then
  for rank in 0 1; do
    on_host $rank "${torchrun[@]}" --no_python --nnodes 2 --node_rank $rank --nproc_per_node 1 --master_addr 10.77.1.1 \
      --master_port $((port + 1)) --rdzv_id hosts --redirects 1 --tee 1 --log_dir logs.$rank \
      "$gyre" train run.toml --out torchrun --interface veth
  done
  all_end 0
  same_bits torchrun "two hosts, torchrun"
else
  echo "torchrun is not tried: there is none (python3-torch)"
fi

# lay_line FLAGS: a line from 10.77.2.1 to 10.77.2.2.
lay_line() {
  mkfifo line
  python3 "$here/line.py" $a 10.77.2.1 $b 10.77.2.2 "$@" >line &
  line=$!
  read -r _ <line || fail "no line"
  rm line
}
remove_line() {
  kill "$line" && wait "$line" 2>/dev/null || true
  line=
}
if [ -e /dev/net/tun ]; then
  lay_line --delay 0.02
  start 10.77.2.1 --out delayed --interface line
  all_end 0
  same_bits delayed "20 ms of delay"
  remove_line
  lay_line --delay 0.001 --jitter 0.004 --loss 0.03
  start 10.77.2.1 --out lossy --interface line
  all_end 0
  same_bits lossy "3% lost, up to 4 ms of jitter"
  remove_line
else
  echo "no line that delays: there is no /dev/net/tun"
fi

# A link that is cut during training, and just after the ranks have met: each side names the other within stall_seconds,
# and the run continues from what was saved.
endless=(--set run.updates=100000 --set run.eval_every=0 --set optimizer.decay=constant)
for steps in 13 1; do
  run=cut-at-$steps
  start 10.77.1.1 --out $run --interface veth --set pipeline.stall_seconds=2 "${endless[@]}"
  wait_for_step $run $steps "${pids[0]}"
  ip -n $a link set veth down
  all_end 1
  for rank in 0 1; do
    other=$((1 - rank))
    [ "$(grep -c '^gyre:' err.$rank)" -eq 1 ] || fail "not one line: $(cat err.$rank)"
    grep -qE "^gyre: rank $other .*(has said nothing for [0-9.]+ s \(\[pipeline\] stall_seconds\)|is gone)" err.$rank ||
      fail "rank $rank does not name rank $other: $(cat err.$rank)"
  done
  grep -qE "on host-b\)" err.0 || fail "the host is not named: $(cat err.0)"
  grep -q '"event":"end","status":"failed"' $run/metrics.jsonl || fail "not recorded as failed"
  echo "cut: $(tail -n 1 err.0)"
  ip -n $a link set veth up
done
"$gyre" train run.toml --out constant "${endless[@]}" --set run.updates=30 >/dev/null 2>&1
start 10.77.1.1 --out cut-at-13 --resume --interface veth "${endless[@]}" --set run.updates=30
all_end 0
same_bits cut-at-13 "after a cut" constant
