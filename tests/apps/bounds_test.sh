# Absurd sizes: exit 2 at once with one line that names the flag or key, however little memory there is.
source "$(dirname "$0")/common.sh"

# Commands that do not load libtorch get 400 MB of address space and 20 s.
program=$gyre
confined() { (ulimit -v 400000; exec timeout 20 "$program" "$@"); }
gyre=confined

for command in simulate schedule; do
  refuses "--stages is 100000; give 1 to 65536" "$gyre" $command --stages 100000
  refuses "--stages is 0; give 1 to 65536" "$gyre" $command --stages 0
  refuses "--stages is '4x'; give a whole number" "$gyre" $command --stages 4x
  refuses "--window is 1000000000; give 0 to 134217728" "$gyre" $command --window 1000000000
  refuses "--window is -1; give 0 to" "$gyre" $command --window -1
  refuses "make --window at most 16777215" "$gyre" $command --schedule 1f1b --window 100000000
  refuses "make --stages smaller" "$gyre" $command --schedule pipedream --stages 65536
  refuses "--preload is 1000000; give 0 to" "$gyre" $command --schedule amdp --preload 1000000
  refuses "--preload is -5; give -1 to" "$gyre" $command --schedule amdp --preload -5
  refuses "--pipelines is 99999; give 0 to 65536" "$gyre" $command --schedule amdp --pipelines 99999
  refuses "--intake is 99999; give 1 to 65536" "$gyre" $command --schedule amdp --intake 99999
  refuses "--chunks is 0; give 1 to 65536" "$gyre" $command --schedule interleaved-1f1b --chunks 0
  refuses "--microbatches is 1000000000000000000; give 0 to" "$gyre" $command --microbatches 1000000000000000000
  for ratio in 0 -1 nan inf; do
    refuses "--tb-over-tf is $ratio; give 0.001 to 1000" "$gyre" $command --schedule amdp --tb-over-tf=$ratio
  done
done
refuses "at most 4294967296 can be simulated; give fewer microbatches" "$gyre" simulate --microbatches 4000000000
refuses "can be traced; give fewer microbatches" "$gyre" simulate --microbatches 1000000 --trace t.json
refuses "the most that are written" "$gyre" schedule --format csv --microbatches 100000000
refuses "give fewer microbatches" "$gyre" schedule --format grid --stages 512 --schedule pipedream --microbatches 65536

# Files that contain such sizes.
printf 'gyre-schedule 1\nname x\nstages 1\npipelines 1\nworkers 1\nwindow 1\nshift 1\nkind training\nweights stash\nplacement 0\nowner 0\nworker 0: 0F30000000000 | 0F0 0B0 0U0\n' >far.txt
refuses "far.txt:12: 0F30000000000 on worker 0: 0F0 does the same" "$gyre" simulate --schedule far.txt
printf '0F134217727,0B0\n' >far.csv
refuses "far.csv:1: 0F0 on worker 0: is missing from the period, which is for 134217728 microbatches" "$gyre" simulate --schedule far.csv
for value in -1 1e300 '"x"'; do
  printf '{"format": "gyre-costs 1", "stages": [{"forward": %s, "backward": 1}]}' "$value" >costs.json
  refuses "costs.json: stages[0]: 'forward'" "$gyre" simulate --costs costs.json
done
printf '{"format": "gyre-costs 1", "stages": [{"forward": 1, "backward": 1, "activation_bytes": 9000000000000000000}]}' >costs.json
refuses "activation_bytes is 9000000000000000000" "$gyre" simulate --costs costs.json

# A file that cannot be read or written is reported before the work is done.
refuses "/nonexistent/x.json cannot be written: No such file" "$gyre" simulate --trace /nonexistent/x.json --microbatches 100000
refuses ". cannot be written: Is a directory" "$gyre" simulate --trace . --microbatches 100000
refuses "nothere.json: cannot be opened" "$gyre" simulate --costs nothere.json
refuses "is unknown, and no file of that name is there" "$gyre" simulate --schedule "$(head -c 5000 /dev/zero | tr '\0' x)"
refuses "no\\x1bsuch" "$gyre" simulate --schedule "$(printf 'no\033such')"

# Keys, in the configuration that train reads.
gyre=$program
refuses "[pipeline] accumulate is 2000000000; give 1 to 134217728" "$gyre" train run.toml --out x --set pipeline.accumulate=2000000000
refuses "make accumulate at most" "$gyre" train run.toml --out x --set pipeline.accumulate=100000000
refuses "[pipeline] threads_per_worker is 1024, and this machine has" "$gyre" train run.toml --out x --set pipeline.threads_per_worker=1024
refuses "[run] keep_checkpoints is 3000000000; give 0 to 1000000" "$gyre" train run.toml --out x --set run.keep_checkpoints=3000000000
refuses "--batches is -1; give 0 or more" "$gyre" eval x --batches -1
refuses "--step is -5; give 0 or more" "$gyre" eval x --step -5
refuses "--tokens is -1; give 1 or more" "$gyre" generate x --prompt a --tokens -1
refuses "--top-k is -1; give 0 or more" "$gyre" generate x --prompt a --top-k -1
refuses "--top-p is 1.5; give 0 to 1" "$gyre" generate x --prompt a --top-p 1.5
refuses "--temperature is nan; give 0 to 1000" "$gyre" generate x --prompt a --temperature nan
refuses "--draws is 4096; give 0 to 4095" "$gyre" diagnose x --draws 4096
for draws in 14 16; do
  refuses "--draws is $draws; give an odd number from 15 on, or 0" "$gyre" diagnose x --draws $draws
done
refuses "--updates is 0; give 1 to 1000000" "$gyre" diagnose x --updates 0
refuses "--jobs is -1; give 0 to 4096" "$gyre" study x.toml --jobs -1
refuses "[run] updates is 1000.0; give a whole number" "$gyre" train run.toml --out x --set run.updates=1e3
refuses "[run] updates is a list; give a whole number" "$gyre" train run.toml --out x --set run.updates=[5]
refuses "the value has more than one line; give each key a --set of its own" "$gyre" train run.toml --out x \
  --set $'run.updates=3\nseed=4'
refuses "run.toml: is not a token file: it has no llm.c header" "$gyre" train run.toml --out x --set data.tokens=run.toml
refuses "--vocab-size is for --tokenizer bpe" "$gyre" prepare text.txt --out x --vocab-size 300
refuses "there is no command 'help'" "$gyre" help
[ ! -e x ] || fail "a refused run left something behind"
