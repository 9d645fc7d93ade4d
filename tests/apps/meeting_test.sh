# How the ranks of a run find each other, and what they report if they do not: a port in use, no other rank, a process
# that does not answer, another run at the same port, ranks that differ in number, program or data. Nothing listens
# where other hosts can reach it without a message that says so.
source "$(dirname "$0")/common.sh"

# How long ranks wait in this test.
patience="--meet-within 3"
# A port that is free, below those that the system assigns.
free_port() {
  for (( ; ; )); do
    port=$((20000 + RANDOM % 10000))
    (: <>/dev/tcp/127.0.0.1/$port) 2>/dev/null || break
  done
}
# come RANK WORLD COMMAND...: starts one rank of a run at $port by hand.
come() {
  RANK=$1 WORLD_SIZE=$2 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "${@:3}"
}
# in_background RANK WORLD COMMAND...: the same in the background; sets pids[RANK], messages go to err.RANK.
in_background() {
  RANK=$1 WORLD_SIZE=$2 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "${@:3}" >out.$1 2>err.$1 &
  pids[$1]=$!
}
# ended RANK CODE [WORDS]: the rank must exit with CODE and print WORDS in a single line of gyre's.
ended() {
  code_of "${pids[$1]}"
  [ "$code" -eq "$2" ] || fail "rank $1: exit $code instead of $2: $(tail -n 3 err.$1)"
  if [ $# -eq 2 ]; then
    ! grep -q '^gyre:' err.$1 || fail "rank $1 speaks: $(cat err.$1)"
  else
    [ "$(grep -c '^gyre:' err.$1)" -eq 1 ] && grep -qE "$3" err.$1 || fail "rank $1: no '$3' in: $(cat err.$1)"
  fi
  ! grep -qE 'c10d|socket.cpp|InitGoogle' err.$1 || fail "a library's words: $(cat err.$1)"
}
# has_said RANK WORDS: waits until the rank has printed WORDS.
has_said() {
  until grep -qE "$2" err.$1; do
    kill -0 "${pids[$1]}" 2>/dev/null || fail "rank $1 ended before '$2': $(cat err.$1)"
    read -rt 0.02 <> <(:) || true
  done
}
# listening PID: the addresses, in hexadecimal, on which its sockets listen.
listening() {
  local inodes
  inodes=$(readlink /proc/$1/fd/* 2>/dev/null | sed -nE 's/^socket:\[([0-9]+)\]$/\1/p')
  awk -v inodes=" $(tr '\n' ' ' <<<"$inodes")" \
    '$4 == "0A" && index(inodes, " " $10 " ") { split($2, at, ":"); print at[1] }' /proc/$1/net/tcp{,6} | sort -u
}
until_it_listens() {
  until (: <>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do
    kill -0 "${pids[$1]}" 2>/dev/null || fail "rank $1 ended: $(cat err.$1)"
    read -rt 0.02 <> <(:) || true
  done
}
only_loopback() {
  ! listening "$1" | grep -vx 0100007F || fail "a rank listens where other hosts reach it"
}
train=("$gyre" train run.toml $patience)

# Variables and flags that are missing or wrong.
refuses "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE are not set, but RANK is" env RANK=0 "$gyre" train run.toml
refuses "RANK is 2, but WORLD_SIZE is 2" env RANK=2 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
  MASTER_PORT=29500 "$gyre" train run.toml
refuses "--meet-within is 0; give 1 to" "$gyre" train run.toml --meet-within 0
free_port
refuses "--interface lo:none: " come 1 2 "$gyre" train run.toml --interface lo:none

# No other rank comes.
refuses "127.0.0.1:$port: nobody has listened there for 1 s (--meet-within)" come 1 2 "$gyre" train run.toml --meet-within 1
ends 2 "rank 1 did not come in 1 s (--meet-within); were all ranks started, with the same MASTER_ADDR and MASTER_PORT? Or does one need longer to read its data?" come 0 2 "$gyre" train run.toml --out nobody --meet-within 1
[ ! -e nobody ] || fail "a run began alone"

# Names of no host, and an address that no host has.
met_by() { env RANK=$1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=$2 MASTER_PORT=$port "$gyre" train run.toml --meet-within 1; }
for rank in 0 1; do refuses "no..where:$port: MASTER_ADDR is not the name of a host" met_by $rank no..where; done
refuses "rank 0 listens, and is not reached there" met_by 0 255.255.255.255

# A rank that waits for others ends when it is asked to. It listens before it waits, so it may still be at its tokens.
for (( ; ; )); do
  free_port
  in_background 0 2 "$gyre" train run.toml --out alone --meet-within 600
  until_it_listens 0
  kill -TERM "${pids[0]}"
  ended 0 143 "stopped before all ranks had met|stopped while tokens were read"
  grep -q "while tokens were read" err.0 || break
done
[ ! -e alone ] || fail "something is left of a run that did not begin"

# Another process listens there and does not answer.
free_port
mkfifo ready
python3 -c '
import signal, socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
print("ready", flush=True)
signal.pause()' $port >ready &
mute=$!
read -r _ <ready
refuses "127.0.0.1:$port: the port is taken" come 0 2 "${train[@]}"
refuses "127.0.0.1:$port: something listens there and does not answer" come 1 2 "$gyre" train run.toml --meet-within 1
kill $mute

# Another program answers there, and not as rank 0 would.
free_port
python3 -c '
import socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
print("ready", flush=True)
while True:
    connection = listener.accept()[0]
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    connection.close()' $port >ready &
web=$!
read -r _ <ready
refuses "127.0.0.1:$port: something answers there that is not rank 0; is it another program's port?" come 1 2 "${train[@]}"
kill $web

# Another run is there: before the two ranks of this one have met, and after.
free_port
in_background 0 2 "${train[@]}" --out mixed --job one
in_background 1 2 "${train[@]}" --out mixed --job two
ended 0 2 "rank 1 \(process [0-9]+ on .*\): its job is not that of rank 0 \(two, and one\)"
ended 1 2
[ ! -e mixed ] || fail "two jobs have mixed"
free_port
long=(--set run.updates=100000 --set run.eval_every=0)
for rank in 0 1; do in_background $rank 2 "${train[@]}" --out first --job one "${long[@]}"; done
has_said 0 "^step "
refuses "127.0.0.1:$port: the port is taken" come 0 3 "${train[@]}" --job two
refuses "another process has come as rank 1 before this one" come 1 3 "${train[@]}" --job two
refuses "its job is not that of rank 0 (two, and one); another run is at the same address" come 2 3 "${train[@]}" --job two

# Where ranks listen: on all addresses of rank 0's host if ranks meet at a port, and a message says so.
[[ "$(listening "${pids[0]}")" =~ (^|$'\n')0+($|$'\n') ]] || fail "rank 0 listens at $(listening "${pids[0]}")"
only_loopback "${pids[1]}"
grep -qxF "network    ranks meet at 127.0.0.1:$port (open on all addresses of that host)" err.0 || fail "not said: $(cat err.0)"
# A stranger's connection to that port, in the middle of a question, does not keep rank 0 at its end.
exec 7<>/dev/tcp/127.0.0.1/$port
printf '\0' >&7
kill -TERM "${pids[0]}"
for rank in 0 1; do ended $rank 143; done
exec 7<&-

# A run that is complete: rank 0 waits until the others know, also those that come later.
free_port
for rank in 0 1; do in_background $rank 2 "${train[@]}" --out complete --set run.updates=2; done
for rank in 0 1; do ended $rank 0; done
free_port
in_background 0 2 "$gyre" train --resume complete --meet-within 60
until_it_listens 0
in_background 1 2 "$gyre" train --resume complete --meet-within 60
for rank in 0 1; do ended $rank 0; done

# Under gyre launch they listen only on loopback.
"$gyre" launch -n 3 -- train run.toml --out launched "${long[@]}" >out.txt 2>err.txt &
pid=$!
wait_for_step launched 3 $pid
for rank in $(cat /proc/$pid/task/$pid/children); do
  only_loopback $rank
done
kill -TERM $pid
code_of $pid
! grep -q "^network" err.txt || fail "$(grep network err.txt)"

# Ranks with another number of ranks, program or data.
free_port
in_background 0 2 "${train[@]}" --out differs
in_background 1 3 "${train[@]}" --out differs
ended 0 2 "rank 1 .*: its number of ranks is not that of rank 0 \(3, and 2\)"
ended 1 2
mkdir bin
cp "$gyre" "$(dirname "$gyre")/gyre-engine" bin
echo >>bin/gyre-engine
free_port
in_background 0 2 "${train[@]}" --out differs
in_background 1 2 bin/gyre train run.toml $patience --out differs
ended 0 2 "rank 1 .*: its build is not that of rank 0"
ended 1 2
# Each host has its own data: rank 1 has read other data than rank 0 finds.
mkdir store
by_launcher() {
  GYRE_RANK=$1 GYRE_WORLD_SIZE=2 GYRE_LOCAL_RANK=$1 GYRE_LOCAL_WORLD_SIZE=2 GYRE_STORE=store GYRE_JOB=a GYRE_RESTART=0 \
    "$gyre" train run.toml --out differs >out.$1 2>err.$1 &
  pids[$1]=$!
}
by_launcher 1
until grep -q facts store/store 2>/dev/null; do
  kill -0 "${pids[1]}" 2>/dev/null || fail "rank 1 ended: $(cat err.1)"
  read -rt 0.02 <> <(:) || true
done
mv tokens tokens.1
sed 's/waters/fields/' text.txt >other.txt
"$gyre" prepare other.txt --out tokens >/dev/null
by_launcher 0
ended 0 2 "rank 1 .*: its train.bin is not that of rank 0"
ended 1 2
[ ! -e differs ] || fail "a refused run left something behind"
