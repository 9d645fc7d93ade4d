# gyre schedule, simulate and plan: machine-readable output, the user's own files, and measurements of a run.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/common.sh"

# has WORDS FILE
has() { grep -qF -- "$1" "$2" || fail "no '$1' in: $(head -c 2000 "$2")"; }

# The makespan K(3d + 1) + 3 at tb = 2 tf: 4 blocks at depth 4.
"$gyre" simulate --schedule amdp --stages 4 --microbatches 16 --json >amdp.json
has '"makespan":55.0' amdp.json
has '"max_mismatch":1' amdp.json
"$gyre" simulate --schedule gpipe --stages 4 --microbatches 8 --json >gpipe.json
has '"makespan":33.0' gpipe.json

# Replicas take as long as one does, and the window counts the microbatches of all of them.
"$gyre" simulate --schedule amdp --stages 4 --microbatches 48 --replicas 3 --json >amdp.json
has '"makespan":55.0' amdp.json
"$gyre" simulate --schedule 1f1b --stages 2 --microbatches 12 --replicas 3 --json >1f1b.json
has '"microbatches":12,"window":12,"makespan":15.0' 1f1b.json
"$gyre" schedule --schedule 1f1b --stages 2 --window 4 --replicas 3 >replicas.txt
"$gyre" simulate --schedule replicas.txt --microbatches 12 --json >file.json
cmp 1f1b.json file.json || fail "replicas written out are simulated otherwise"

# A schedule written out is read, validated, simulated and executed like a builtin.
"$gyre" schedule --schedule chimera --stages 4 --window 4 >mine.txt
"$gyre" simulate --schedule mine.txt --microbatches 8 --json >mine.json
"$gyre" simulate --schedule chimera --stages 4 --window 4 --microbatches 8 --json >builtin.json
cmp mine.json builtin.json || fail "the file is simulated otherwise than the builtin"
"$gyre" train run.toml --out builtin --set pipeline.schedule=chimera --set pipeline.stages=4 --set pipeline.accumulate=4 --set run.updates=6 >/dev/null 2>&1
"$gyre" train run.toml --out mine --set pipeline.schedule=mine.txt --set pipeline.stages=4 --set pipeline.accumulate=4 --set run.updates=6 >/dev/null 2>&1
cmp builtin/checkpoints/step-00000006/model.safetensors mine/checkpoints/step-00000006/model.safetensors || fail "the file trains otherwise than the builtin"
"$gyre" schedule --schedule 1f1b --stages 2 --microbatches 2 --format csv >two.csv
[ "$(cat two.csv)" = "$(printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1')" ] || fail "CSV: $(cat two.csv)"
"$gyre" simulate --schedule two.csv --microbatches 2 >/dev/null

# DualPipeV as PyTorch writes it for two ranks and four microbatches trains to the same bits as one stage, as do the
# builtins.
short=(--set pipeline.accumulate=4 --set run.updates=6)
cp "$here/../schedule/pytorch/dualpipe-v-2-4.csv" pytorch.csv
"$gyre" train run.toml --out one "${short[@]}" --set pipeline.schedule=gpipe --set pipeline.stages=1 >/dev/null 2>&1
for schedule in pytorch.csv dualpipe-v zb-v; do
  "$gyre" train run.toml --out v-$schedule "${short[@]}" --set pipeline.schedule=$schedule --set pipeline.stages=4 >/dev/null 2>log || fail "$schedule: $(cat log)"
  has " on 2 workers" log
  diff <(losses one) <(losses v-$schedule) >difference || fail "$schedule: losses differ: $(head -n 3 difference)"
  cmp {one,v-$schedule}/checkpoints/step-00000006/model.safetensors || fail "$schedule: weights differ"
  cmp {one,v-$schedule}/checkpoints/step-00000006/optimizer.safetensors || fail "$schedule: optimizer states differ"
done

# The measurements and the trace of a run can be read by the simulator.
"$gyre" train run.toml --out traced --set pipeline.schedule=amdp --set pipeline.stages=2 --set pipeline.accumulate=2 --set run.updates=6 --trace trace.json >/dev/null 2>&1
has '"traceEvents"' trace.json
has '"name":"0U5"' trace.json
"$gyre" simulate traced/config.toml --costs traced --microbatches 12 --json >predicted.json
has '"tokens_per_time"' predicted.json
! grep -q '"checkpoint"' traced/costs.json || fail "the end of a run kept nobody waiting"
"$gyre" train run.toml --out stalls --set pipeline.stages=2 --set run.updates=6 --set run.checkpoint_every=2 >/dev/null 2>&1
grep -qE '"checkpoint": *[0-9.e-]*[1-9]' stalls/costs.json || fail "costs.json lacks the time that a checkpoint keeps workers waiting"
"$gyre" simulate stalls/config.toml --costs stalls --microbatches 12 --checkpoint-every 2 --json >predicted.json
grep -qE '"checkpoint_stall": *[0-9.e-]*[1-9]' predicted.json || fail "the simulator does not take the measured stall"
"$gyre" plan run.toml --json >plan.json
has '"schedule":"zb-h1"' plan.json
# What one plan measured gives another the same plan, also where the data is not.
"$gyre" plan run.toml --set data.tokens=nowhere --layers plan.json --json | cmp - plan.json || fail "other plans from the same layers"
taskset -c "$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')" "$gyre" plan run.toml --layers plan.json --set optimizer.lr=0.5 >plan.txt
! grep -q 'this machine' plan.txt || fail "measured elsewhere, and compared with this machine: $(cat plan.txt)"
refuses "plan.json: its layers were measured with pipeline.microbatch = " "$gyre" plan run.toml --layers plan.json --set pipeline.microbatch=3
refuses "run.toml: not JSON; give what gyre plan --json printed" "$gyre" plan run.toml --layers run.toml
"$gyre" plan run.toml --set pipeline.stages=2 --json >plan.json  # four stages for schedules with two on each worker
has '"schedule":"zb-v","stages":4' plan.json
has '"schedule":"dualpipe-v","stages":4' plan.json

# The same commands with BERT.
"$gyre" train run.toml --out bert --set model.kind=bert --set pipeline.schedule=amdp --set pipeline.stages=2 --set pipeline.accumulate=2 --set run.updates=4 >/dev/null 2>&1
"$gyre" eval bert >/dev/null

refuses "make --window at least 8, or --pipelines at most 2" "$gyre" simulate --schedule amdp --stages 8 --window 4
refuses "simulate 8 or 12" "$gyre" simulate --schedule 1f1b --stages 2 --window 4 --microbatches 10
refuses "no multiple of the window, 4; simulate 4" "$gyre" simulate --schedule 1f1b --stages 2 --window 4 --microbatches 3
refuses "every worker has two stages, and --stages is 5; give an even number" "$gyre" simulate --schedule zb-v --stages 5
refuses "make --microbatches at least 8" "$gyre" simulate --schedule dualpipe-v --stages 8 --microbatches 7
refuses "make --window at least 8" "$gyre" simulate --schedule dualpipe-v --stages 8 --microbatches 14 --window 7
refuses "[pipeline] (stages = 3, accumulate = 4): schedule zb-v: every worker has two stages" "$gyre" train run.toml --out x --set pipeline.schedule=zb-v --set pipeline.accumulate=4
refuses "make accumulate at least 4" "$gyre" train run.toml --out x --set pipeline.schedule=dualpipe-v --set pipeline.stages=4
refuses "--replicas is 0; give 1 to 65536" "$gyre" simulate --schedule 1f1b --replicas 0
refuses "make --window at most 1677, or --replicas smaller" "$gyre" simulate --schedule 1f1b --window 10000 --replicas 10000
refuses "has 2 pipelines, which this CSV cannot express" "$gyre" schedule --schedule 1f1b --replicas 2 --format csv
refuses "did you mean 'chimera'?" "$gyre" simulate --schedule chimaera
refuses "did you mean 'grid'?" "$gyre" schedule --format grit
refuses "'forward' is -1; give 0 or more" sh -c "sed 's/\"forward\": [0-9.e-]*/\"forward\": -1/' traced/costs.json >bad.json; '$gyre' simulate --schedule 1f1b --stages 2 --costs bad.json"
refuses "use at most 8 stages" "$gyre" plan run.toml --set pipeline.stages=9
# Larger updates than the configuration's are other training: rows that need them come last, and the table says so.
"$gyre" plan run.toml --set pipeline.stages=4 --set pipeline.accumulate=1 --json >plan.json
python3 - plan.json <<'PY' || fail "the order of rows: $(tail -c 3000 plan.json)"
import json, sys
plan = json.load(open(sys.argv[1]))
sizes = [row["microbatches_per_update"] for row in plan["plan"]]
assert plan["microbatches_per_update"] == sizes[0] == 1 and sizes == sorted(sizes) and sizes[-1] > 1, sizes
assert plan["common_accumulate"] >= sizes[-1]
PY
common=$(sed -E 's/.*"common_accumulate":([0-9]+).*/\1/' plan.json)
"$gyre" plan run.toml --set pipeline.stages=4 --set pipeline.accumulate=1 >plan.txt
has "compare tokens/s only between equal updates (--set pipeline.accumulate=$common makes all equal)" plan.txt
has "of the fastest with accumulate 1: network" plan.txt
[ "$(sed -n '/^  schedule /,/^  larger updates/p' plan.txt | grep -cE '^. (pipedream|gpipe) +4 +1 +1 ')" -eq 2 ] || fail "the first rows: $(cat plan.txt)"
"$gyre" plan run.toml --set pipeline.stages=4 --set "pipeline.accumulate=$common" >plan.txt
! grep -q 'larger updates' plan.txt || fail "updates still differ: $(cat plan.txt)"
# A schedule file is ranked with the others; the mark of the configuration's own row is explained only if there is one.
"$gyre" plan run.toml --set pipeline.schedule=mine.txt --set pipeline.stages=4 --set pipeline.accumulate=4 >plan.txt
grep -qE '^\* mine.txt +4 ' plan.txt || fail "the file is not ranked: $(cat plan.txt)"
has "* the configuration's own; memory" plan.txt
"$gyre" plan run.toml --set pipeline.schedule=amdp --set pipeline.stages=4 --set pipeline.accumulate=1 >plan.txt
! grep -q '^\*' plan.txt || fail "no row is the configuration's: $(cat plan.txt)"
taskset -c "$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')" "$gyre" plan run.toml >plan.txt
has "tokens/s take 3 cores, 1 for each of 3 workers; this machine has 1, and is slower" plan.txt
# A schedule that puts several stages on a worker has fewer workers than stages.
taskset -c "$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')" "$gyre" plan run.toml --set pipeline.schedule=zb-v --set pipeline.stages=4 --set pipeline.accumulate=8 >plan.txt
has "tokens/s take 2 cores, 1 for each of 2 workers; this machine has 1, and is slower" plan.txt
grep -qE '^\* zb-v +4 ' plan.txt || fail "no row is the configuration's own: $(cat plan.txt)"
"$gyre" plan run.toml --set pipeline.schedule=interleaved-1f1b --set pipeline.stages=6 --set pipeline.interleaved-1f1b.chunks=3 --json >plan.json
has '"cores_needed":2,' plan.json
has '"schedule":"1f1b","stages":2' plan.json
refuses "every worker has two stages, and stages is 3" "$gyre" plan run.toml --set pipeline.schedule=zb-v
refuses "no schedule fits in" "$gyre" plan run.toml --memory 1KiB
refuses "gyre generate needs a run of one that can: gpt" "$gyre" generate bert --prompt a

# Updates wait for a common norm where a run's do: as its configuration says, or the flag.
makespan() { "$gyre" simulate "$@" --json | sed -E 's/.*"makespan":([0-9.]*).*/\1/'; }
v=(--set pipeline.schedule=zb-v --set pipeline.stages=4 --set pipeline.accumulate=8 --microbatches 80)
flags=(--schedule zb-v --stages 4 --window 8 --microbatches 80)
[ "$(makespan run.toml "${v[@]}")" = "$(makespan "${flags[@]}" --clip-scope global)" ] || fail "a configuration's own clipping"
[ "$(makespan run.toml "${v[@]}" --set optimizer.clip=0)" = "$(makespan "${flags[@]}")" ] || fail "no clipping"
[ "$(makespan "${flags[@]}")" != "$(makespan "${flags[@]}" --clip-scope global)" ] || fail "--clip-scope has no effect"
refuses "--clip-scope global needs a schedule with a flush" "$gyre" simulate --schedule amdp --clip-scope global
refuses '[optimizer] clip_scope = "global" needs a schedule with a flush' "$gyre" simulate run.toml --set optimizer.clip_scope=global
refuses "--clip-scope is \"globl\"; give one of: auto, global, stage, none" "$gyre" simulate --schedule amdp --clip-scope globl
refuses "--clip-scope has no effect beside run.toml" "$gyre" simulate run.toml --clip-scope stage

# Flags that would have no effect.
refuses "--schedule, --replicas, --tb-over-tf, --stages, --window have no effect beside run.toml; change what it says with --set" "$gyre" simulate run.toml --stages 8 --schedule 1f1b --window 16 --replicas 2 --tb-over-tf 3
refuses "--chunks has no effect beside run.toml" "$gyre" schedule run.toml --chunks 3
refuses "--stages, --window have no effect on schedule mine.txt; leave them out" "$gyre" schedule --schedule mine.txt --stages 9 --window 4
refuses "--tb-over-tf has no effect on schedule mine.txt; leave it out" "$gyre" simulate --schedule mine.txt --costs traced --tb-over-tf 3
refuses "--tb-over-tf has no effect on schedule mine.txt; leave it out" "$gyre" schedule --schedule mine.txt --tb-over-tf 3
"$gyre" simulate --schedule mine.txt --tb-over-tf 3 >/dev/null
"$gyre" schedule --schedule mine.txt --tb-over-tf 3 --format grid >/dev/null
refuses "--chunks, --intake, --pipelines have no effect on schedule pipedream; leave them out" "$gyre" schedule --schedule pipedream --chunks 3 --pipelines 7 --intake 9
refuses "did you mean 'chimera'?" "$gyre" simulate --schedule chimaera --chunks 3
"$gyre" simulate run.toml --microbatches 8 --set pipeline.stages=2 >/dev/null

sed 's/0:0B0/0:0B2/' mine.txt >broken.txt
ends 2 "has been done already" "$gyre" simulate --schedule broken.txt
sed 's/^worker 3:.*|/worker 3: |/' mine.txt | sed 's/1:0F1 //' >incomplete.txt
ends 2 "worker 3" "$gyre" simulate --schedule incomplete.txt

# On a cluster: links by class, speeds, checkpoints. A fault in its file gives one line.
cat >cluster.toml <<'TOML'
[cluster]
within_host = "inside"
between_hosts = "network"
[links.inside]
bandwidth = 1e10
[links.network]
latency = 1.0
bandwidth = 1e9
[[hosts]]
name = "a"
workers = 2
[[hosts]]
name = "b"
workers = 2
TOML
on_cluster=("$gyre" simulate --schedule gpipe --stages 3 --microbatches 2 --costs costs.json --cluster cluster.toml --json)
echo '{"format": "gyre-costs 1", "stages": [{"forward": 1, "backward": 2, "output_bytes": 1000000000, "optimizer_bytes": 2000000000}]}' >costs.json
"${on_cluster[@]}" >network.json
has '"makespan":16.2' network.json  # the last gradient reaches worker 1 at 12.1 and worker 0 at 14.2, and takes 2 there
has '"hosts":2,"links":[{"class":"inside","links":2' network.json
has '{"class":"network","links":2,"busiest":[1,2],"bytes_per_microbatch":1000000000.0' network.json
"${on_cluster[@]}" --checkpoint-every 1 >saved.json
has '"makespan":18.2' saved.json
has '"checkpoints":1,"checkpoint_stall":2.0' saved.json
"${on_cluster[@]:0:${#on_cluster[@]}-1}" >network.txt
has 'network: 2 links; the busiest, from worker 1 to 2, carries 953.7 MiB a microbatch, ' network.txt
refuses "the schedule has 5 workers, and the 2 hosts of the cluster can run 4" "$gyre" simulate --schedule gpipe --stages 5 --costs costs.json --cluster cluster.toml
refuses "--cluster needs --costs" "$gyre" simulate --schedule gpipe --cluster cluster.toml
refuses "leave out --checkpoint-every" "$gyre" simulate --schedule gpipe --trace t.json --checkpoint-every 1
refuses "cluster.toml:2: [cluster] within_host is \"outside\"" sh -c "sed -i 's/\"inside\"/\"outside\"/' cluster.toml; '$gyre' simulate --schedule gpipe --costs costs.json --cluster cluster.toml"
refuses "has no host; give each as [[hosts]]" sh -c "echo >cluster.toml; '$gyre' simulate --schedule gpipe --costs costs.json --cluster cluster.toml"
