# Uses a schedule, an optimizer and a model from outside the library everywhere a user uses gyre's own.
. "$(dirname "$0")/../apps/common.sh"

has() { grep -qF -- "$1" "$2" || fail "no '$1' in $2: $(head -c 1000 "$2")"; }

# Help and reference.
"$gyre" info >info.txt
has "amdp, lifo" info.txt
has "error-feedback, signum" info.txt
has "gpt, bert, llama, echo" info.txt
"$gyre" init >init.toml
has "[optimizer.signum]" init.toml
has "[pipeline.lifo]" init.toml
has "# hidden size of the MLP in widths (a whole number, 1 to 64; default 2)" init.toml
"$gyre" train --help-config >reference.md
has '| `signum` | the sign of the momentum |' reference.md
has '| `ratio` | `2` | hidden size of the MLP in widths |' reference.md
"$gyre" simulate --help >help.txt
has "lifo: whether backwards begin with the last microbatch" help.txt

# Schedules: drawn and simulated, with the schedule's own option as a flag.
"$gyre" schedule --schedule lifo --stages 2 --window 2 --format text >lifo.txt
has "0B1 0B0" lifo.txt
"$gyre" schedule --schedule lifo --stages 2 --window 2 --format text --reversed false >fifo.txt
has "0B0 0B1" fifo.txt
"$gyre" simulate --schedule lifo --stages 4 --microbatches 8 --json >/dev/null

# What others build is validated, whoever asks for it, and errors name the schedule.
no_backward="schedule no-backward: 0B0 on worker 0: is missing from the period"
refuses "$no_backward" "$gyre" simulate --schedule no-backward --stages 2 --window 2
refuses "$no_backward" "$gyre" train run.toml --out c --check --set pipeline.schedule=no-backward
ends 2 "schedule backward-first: 0B0 on worker 0: deadlock: it needs 0F0" "$gyre" simulate --schedule backward-first \
  --stages 1 --window 2
ends 2 "schedule backward-first: 0B0 on worker 0: deadlock" "$gyre" train run.toml --out c --check --set pipeline.schedule=backward-first
refuses "schedule idle-worker: its builder has made 3 workers for 2 stages, and its stages_per_worker is 1" \
  "$gyre" simulate --schedule idle-worker --stages 2
refuses "schedule throws: its builder has failed: no order found" "$gyre" simulate --schedule throws --stages 2
"$gyre" plan run.toml >plan.txt 2>plan.err || fail "plan: $(cat plan.err)"
for faulty in no-backward backward-first idle-worker throws; do
  grep "left out: $faulty: schedule $faulty: " plan.txt >left_out.txt || fail "plan ranks $faulty: $(cat plan.txt)"
done
"$gyre" simulate --schedule no-windows --stages 2 >/dev/null || fail "a schedule that says nothing of its windows"

ends 2 "[optimizer] kind makes-none: its make gave null" "$gyre" train run.toml --out c --set optimizer.kind=makes-none

# A run with all three: both executors train it to the same bits; it is evaluated and resumed.
outside=(--set pipeline.schedule=lifo --set optimizer.kind=signum --set optimizer.signum.momentum=0.8
         --set optimizer.lr=3e-3 --set model.kind=echo --set model.echo.ratio=3 --set run.updates=120
         --set run.checkpoint_every=20 --set run.eval_every=0)
"$gyre" train run.toml --out a "${outside[@]}" 2>a.err || fail "train: $(cat a.err)"
has "echo, 3 blocks of width 32" a.err
has "signum, lr 0.003" a.err
"$gyre" train run.toml --out b "${outside[@]}" --set pipeline.executor=replay 2>b.err || fail "replay: $(cat b.err)"
diff <(losses a) <(losses b) >difference || fail "threads and replay differ: $(head -n 3 difference)"
cmp {a,b}/checkpoints/step-00000120/optimizer.safetensors || fail "threads and replay differ"
has "momentum = 0.8" a/config.toml
loss=$(sed -nE 's/.*"event":"step","step":120,.*"loss":([0-9.]+).*/\1/p' a/metrics.jsonl)
awk "BEGIN { exit !($loss < 2) }" || fail "it does not learn to repeat: loss $loss"
"$gyre" eval a >/dev/null 2>&1 || fail "eval"
ends 2 "a echo cannot continue a text (decoder that learns to repeat); gyre generate needs a run of one that can: gpt" "$gyre" generate a --prompt x

# Wrong values are reported as for gyre's own components.
refuses "[optimizer.signum] momentum is 2; give 0 to 1" "$gyre" train run.toml --out c "${outside[@]}" \
  --set optimizer.signum.momentum=2
refuses "did you mean 'signum'?" "$gyre" train run.toml --out c --set optimizer.kind=signun
refuses "it is a key of [model.echo]" "$gyre" train run.toml --out c --set model.ratio=2
refuses "[model.echo] ratio is 4, but the run was begun with 3" "$gyre" train --resume a --set model.echo.ratio=4

# Plans and studies.
"$gyre" plan run.toml --set optimizer.kind=signum >plan.txt 2>plan.err || fail "plan: $(cat plan.err)"
has " lifo " plan.txt
cat run.toml - >study.toml <<'TOML'
[study]
smooth = 5
[[study.method]]
name = "Signum"
set = ["optimizer.kind=signum", "pipeline.schedule=lifo", "model.kind=echo", "run.updates=20"]
TOML
"$gyre" study study.toml --out study >study.md 2>study.err || fail "study: $(cat study.err)"
has "| Signum |" study.md
