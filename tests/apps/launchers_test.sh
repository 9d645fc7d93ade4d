# PipeDream and AMDP in two processes started by another launcher, GYRE_LAUNCHER: torchrun, mpirun or srun. The bits are
# those of one process. A killed rank ends the run, or changes nothing if the launcher starts it again. Skipped (exit
# 77) if the launcher is not installed or cannot run. srun gets a one-node Slurm in its own namespaces.
here=$(realpath "$0")
skip() { echo "SKIPPED: $*"; exit 77; }
launcher=$GYRE_LAUNCHER
case $launcher in
  torchrun)
    # Debian's module belongs to the system's Python.
    python=/usr/bin/python3
    $python -c "import torch.distributed.run" 2>/dev/null || skip "there is no torchrun (python3-torch)"
    ;;
  mpirun)
    command -v mpirun >/dev/null || skip "there is no mpirun (openmpi-bin)"
    mpirun --version 2>&1 | grep -q "Open MPI" || skip "mpirun is not Open MPI's"
    ;;
  srun)
    for program in srun slurmd slurmctld munged; do
      [ -x "/usr/sbin/$program" ] || command -v $program >/dev/null || skip "there is no $program (slurmd, slurmctld, slurm-client, munge)"
    done
    [ "$(id -u)" -eq 0 ] || skip "a Slurm of one node needs root"
    # A PID namespace, so that everything ends with its first process.
    if [ -z "${GYRE_INSIDE:-}" ]; then
      unshare --net --uts --mount --pid --fork true 2>/dev/null || skip "no namespaces can be made here"
      GYRE_INSIDE=1 exec unshare --net --uts --mount --pid --fork --kill-child --mount-proc bash "$here" "$@"
    fi
    ;;
  *) echo "GYRE_LAUNCHER is torchrun, mpirun or srun" >&2; exit 2 ;;
esac
source "$(dirname "$here")/common.sh"

# A node called localhost. A second address beside the loopback's makes names resolve.
start_slurm() {
  hostname localhost
  ip link set lo up
  ip address add 10.77.9.1/32 dev lo
  mkdir slurm slurm/{state,spool,munge}
  chmod 755 "$work" slurm
  head -c 1024 /dev/urandom >slurm/munge/key
  chmod 400 slurm/munge/key
  chown -R munge slurm/munge
  runuser -u munge -- munged --force --socket="$work/slurm/munge/socket" --key-file="$work/slurm/munge/key" \
    --pid-file="$work/slurm/munge/pid" --log-file="$work/slurm/munge/log" --seed-file="$work/slurm/munge/seed" ||
    skip "munged cannot be started"
  cat >slurm/slurm.conf <<CONF
ClusterName=gyre
SlurmctldHost=localhost(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$work/slurm/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/slurm/state
SlurmdSpoolDir=$work/slurm/spool
SlurmctldPidFile=$work/slurm/slurmctld.pid
SlurmdPidFile=$work/slurm/slurmd.pid
SlurmctldLogFile=$work/slurm/slurmctld.log
SlurmdLogFile=$work/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=localhost NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$work/slurm/slurm.conf
  slurmctld -D >slurm/slurmctld.out 2>&1 &
  slurmd -D -N localhost >slurm/slurmd.out 2>&1 &
  local tries
  for ((tries = 0; tries < 300; ++tries)); do
    ! sinfo -h -o %T 2>/dev/null | grep -q idle || return 0
    read -rt 0.1 <> <(:) || true
  done
  skip "Slurm does not start: $(tail -n 3 slurm/slurmd.out slurm/slurmctld.out)"
}

# A port that is free, below those that the system assigns.
find_port() {
  for (( ; ; )); do
    export MASTER_PORT=$((20000 + RANDOM % 10000))
    (: <>/dev/tcp/127.0.0.1/$MASTER_PORT) 2>/dev/null || break
  done
}

# launch WORDS...: runs gyre train with WORDS as two ranks; messages of rank 0 and of the launcher go to err.txt.
case $launcher in
  torchrun)
    launch() {
      find_port
      rm -rf logs
      # PyTorch 1.13 crashes under Python 3.11 unless outputs go to files.
      $python -m torch.distributed.run --no_python --nproc_per_node 2 --rdzv_id test --master_port "$MASTER_PORT" --redirects 1 --tee 1 \
        --log_dir logs --max_restarts "${restarts:-0}" "$gyre" train "$@" >out.txt 2>err.txt
    }
    ;;
  mpirun)
    launch() {
      find_port
      mpirun --allow-run-as-root --oversubscribe --bind-to none -x MASTER_PORT -n 2 "$gyre" train "$@" >out.txt 2>err.txt
    }
    ;;
  srun)
    start_slurm
    launch() { srun --overcommit --cpu-bind=none --mpi=none --kill-on-bad-exit=1 -n 2 "$gyre" train "$@" >out.txt 2>err.txt; }
    ;;
esac
# ranks: the processes of the run in progress.
ranks() {
  local process
  for process in $(grep -lazE "^$work/" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do
    [[ $(readlink /proc/$process/exe) != */gyre-engine ]] || echo $process
  done
}

pipedream=()
amdp=(--set pipeline.schedule=amdp --set pipeline.accumulate=4)
for schedule in pipedream amdp; do
  declare -n words=$schedule
  "$gyre" train run.toml --out "$work/$schedule" "${words[@]}" >/dev/null 2>&1
  launch run.toml --out "$work/$schedule-2" "${words[@]}" || fail "$schedule: exit $?: $(tail -n 5 err.txt)"
  same_run $schedule $schedule-2 "$schedule under $launcher"
  grep -qrs "finished at step 120" out.txt logs || fail "rank 0 does not print: $(cat out.txt err.txt)"
  echo "$schedule under $launcher: the same bits"
done

# A rank is killed: the run ends, and continues from its last save to the same bits; torchrun restarts it by itself.
if [ $launcher = torchrun ]; then restarts=1; fi
long=(--set run.updates=900 --set run.checkpoint_every=100 --set run.eval_every=300)
"$gyre" train run.toml --out "$work/alone" "${long[@]}" >/dev/null 2>&1
launch run.toml --out "$work/killed" --resume "${long[@]}" &
pid=$!
wait_for_step killed 110 $pid
victim=$(ranks | tail -n 1)
[ -n "$victim" ] || fail "no rank is there: $(tail -n 5 err.txt)"
kill -KILL "$victim"
code_of $pid
if [ $launcher = torchrun ]; then
  [ "$code" -eq 0 ] || fail "exit $code after a rank was killed: $(tail -n 5 err.txt)"
else
  [ "$code" -ne 0 ] || fail "a rank was killed, and the launcher ends with 0"
  "$gyre" train --resume killed >/dev/null 2>&1
fi
[ -z "$(ranks)" ] || fail "a rank is left behind: $(ranks)"
diff <(losses alone) <(losses killed) >difference || fail "killed under $launcher: losses differ: $(head -n 3 difference)"
same_tensors {alone,killed}/checkpoints/step-00000900 "killed under $launcher"
echo "killed under $launcher: the same bits"

# Preemption, as Slurm does it: all ranks get SIGTERM, drain and save.
if [ $launcher = srun ]; then
  launch run.toml --out "$work/preempted" --set run.updates=100000 &
  pid=$!
  wait_for_step preempted 23 $pid
  scancel --signal=TERM "$(squeue -h -o %i)"
  code_of $pid
  [ "$code" -eq 143 ] || fail "exit $code after scancel: $(tail -n 5 err.txt)"
  step=$(drained_at preempted)
  [ -e "preempted/checkpoints/step-$(printf %08d "$step")/manifest.json" ] || fail "no checkpoint after SIGTERM"
  echo "preempted under srun: saved at step $step"
fi
