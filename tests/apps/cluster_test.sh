# gyre plan --cluster: a plan for two workers of this host, which is then trained as printed; the order of workers,
# which changes no bit; the table of weak scaling in the docs.
source_of_gyre=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

cat >cluster.toml <<'TOML'
[cluster]
within_host = "host"
[links.host]
latency = 5e-5
bandwidth = 1e9
[[hosts]]
name = "here"
workers = 2
memory = "4GiB"
TOML

# One row is the configuration's own: with the same number of pipelines and the same recompute.
own_rows() { "$gyre" plan run.toml --set pipeline.schedule=amdp --set pipeline.accumulate=4 "$@" | sed -nE 's/^\* (amdp) +([0-9]+) +([0-9]+) .*/\1 \3/p'; }
[ "$(own_rows)" = "amdp 2" ] || fail "amdp's own row: $(own_rows)"
[ "$(own_rows --set pipeline.amdp.pipelines=1)" = "amdp 1" ] || fail "amdp's row of one pipeline"
[ -z "$(own_rows --set pipeline.recompute=true)" ] || fail "a row without recompute is not that of a run with it"
# JSON says, as the text does, which cores the rates assume.
"$gyre" plan run.toml --json >plan.json
grep -q "\"cores_needed\":3,\"cores_here\":$(env -u OMP_NUM_THREADS nproc)," plan.json || fail "no cores: $(head -c 200 plan.json)"

# What the plan prints can be put into a configuration and started.
"$gyre" plan run.toml --cluster cluster.toml --rows 5 >plan.txt
# Which is the fastest depends on measured times, and it may have all stages on one worker.
grep -qE '^network: (from stage to stage .* a microbatch|nothing from stage to stage)' plan.txt || fail "no need of the network: $(cat plan.txt)"
[ "$(grep -cE '^  (gpipe|[a-z0-9-]+) +1 ' plan.txt)" -eq 5 ] || fail "not five rows: $(cat plan.txt)"
settings=$(sed -n '/^\[pipeline\]$/,/^$/s/^\([a-z_]*\) = /--set=pipeline.\1=/p' plan.txt)
own=$(sed -n '/^\[pipeline\.[a-z0-9-]*\]$/,/^$/p' plan.txt)
table=$(sed -n 's/^\[\(pipeline\.[a-z0-9-]*\)\]$/\1/p' plan.txt)
[ -z "$own" ] || settings="$settings $(sed -n "s/^\([a-z_]*\) = /--set=$table.\1=/p" <<<"$own")"
command=$(tail -n 1 plan.txt)
case $command in "gyre launch -n 2 -- train run.toml" | "gyre train run.toml") ;; *) fail "not a command for this host: $command" ;; esac
eval "\"\$gyre\" ${command#gyre } $(tr '\n' ' ' <<<"$settings") --set run.updates=4 --out planned" >out.txt 2>err.txt || fail "the plan cannot be trained: $settings: $(cat err.txt)"
"$gyre" plan run.toml --cluster cluster.toml --rows 3 --json >plan.json
python3 - plan.json <<'PY' || fail "the plan's JSON: $(head -c 2000 plan.json)"
import json, sys
rows = json.load(open(sys.argv[1]))["plan"]
assert len(rows) == 3
# Rows that are as fast but for rounding are in order of delay and memory.
ranks = [(row["microbatches_per_update"], -float("%.6g" % row["tokens_per_second"])) for row in rows]
assert ranks == sorted(ranks) and ranks[0][0] == 2
for row in rows:
    assert row["hosts"] == 1 and row["workers"] <= 2 and row["worker_order"] == "pipelines"
    assert set(row["lost"]) == {"bubble", "imbalance", "messages", "reductions", "checkpoints"}
PY
# Words that a shell would split are quoted. Overrides stay in the command, except for keys that the plan prints: they
# would override these.
mkdir "a run" && cp run.toml "a run/it's.toml"
"$gyre" plan "a run/it's.toml" --cluster cluster.toml --set data.tokens="$work/tokens" --set pipeline.stages=2 --set "run.prometheus=a b.prom" >plan.txt
command=$(tail -n 1 plan.txt)
case $command in
  "gyre "*"train 'a run/it'\\''s.toml' --set data.tokens=$work/tokens --set run.prometheus='a b.prom'") ;;
  *) fail "not a command that works: $command" ;;
esac
eval "\"\$gyre\" ${command#gyre } --set run.updates=2 --out quoted" >out.txt 2>err.txt || fail "the plan's command: $command: $(cat err.txt)"
refuses "no schedule fits in the memory of the cluster's workers" sh -c "sed 's/4GiB/4KiB/' cluster.toml >small.toml; '$gyre' plan run.toml --cluster small.toml"
refuses "empty.toml: has no host" sh -c ">empty.toml; '$gyre' plan run.toml --cluster empty.toml"

# Workers numbered stage by stage: each process then has both replicas of a stage. The bits are the same.
two=(--set pipeline.stages=2 --set pipeline.replicas=2 --set run.updates=20)
"$gyre" train run.toml --out by-pipelines "${two[@]}" --set pipeline.executor=replay >/dev/null 2>&1
"$gyre" launch -n 2 -- train run.toml --out by-stages "${two[@]}" --set pipeline.worker_order=stages >/dev/null 2>err.txt || fail "$(cat err.txt)"
diff <(losses by-pipelines) <(losses by-stages) >difference || fail "losses differ: $(head -n 3 difference)"
same_tensors {by-pipelines,by-stages}/checkpoints/step-00000020 "the order of workers"

# The first rows of the table in the docs.
"$source_of_gyre/bench/weak_scaling" 16 "$gyre" >table.txt
while read -r row; do
  grep -qxF "$row" "$source_of_gyre/docs/benchmarks.md" || fail "not in docs/benchmarks.md: $row"
done <table.txt
