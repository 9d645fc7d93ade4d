# Mistakes of an impatient user: wrong words, wrong values, wrong paths. Each gives exit code 2 and one line, in gyre's
# own words, that says what is wrong and what to do; nothing is written.
source "$(dirname "$0")/common.sh"

# Commands and flags.
refuses "give a command; see gyre --help" "$gyre"
refuses "did you mean 'train'?" "$gyre" trian
refuses "unknown flag --jsn; a command comes first" "$gyre" --jsn
refuses "unknown flag --jsn; did you mean --json?" "$gyre" info --jsn
refuses "gyre info does not expect 'x'; see gyre info --help" "$gyre" info x
refuses "did you mean --set run.updates=3?" "$gyre" train run.toml --updates 3
refuses "did you mean --set run.updates=3?" "$gyre" train run.toml --updates=3
refuses "did you mean --set optimizer.weight_decay=0.1?" "$gyre" train run.toml --weight-decay 0.1
refuses "did you mean --set optimizer.lr=1e-3?" "$gyre" train run.toml --optimizer.lr 1e-3
refuses "--set model.kind=bert or --set optimizer.kind=bert?" "$gyre" train run.toml --kind bert
refuses "--set pipeline.microbatch=4?" "$gyre" train run.toml --microbatches 4
refuses "did you mean --set optimizer.lr=1e-3?" "$gyre" train run.toml --model.lr 1e-3
refuses "did you mean --set optimizer.weight_decay=0.1?" "$gyre" train run.toml --wieght-decay 0.1
refuses "unknown flag --nonsense; see gyre train --help" "$gyre" train run.toml --nonsense
refuses "did you mean --resume" "$gyre" train run.toml --resum
refuses "did you mean --temperature?" "$gyre" generate run --prompt a --temprature 1
refuses "unknown flag --zzzzzzzz; see gyre eval --help" "$gyre" eval run --zzzzzzzz
refuses "gyre eval needs run: directory of the run; see gyre eval --help" "$gyre" eval
refuses "gyre generate needs --prompt" "$gyre" generate run
refuses "are both given" "$gyre" generate run --prompt a --prompt-file b
refuses "/dev/null: the prompt is empty" "$gyre" generate run --prompt-file /dev/null
refuses "nowhere.txt: cannot be opened: No such file" "$gyre" generate run --prompt-file nowhere.txt
refuses "standard input: cannot be read: Is a directory" "$gyre" generate run --prompt-file - <.
refuses "gyre prepare needs text" "$gyre" prepare --out x
refuses "gyre prepare needs --out" "$gyre" prepare text.txt
refuses "--out lacks its value" "$gyre" prepare text.txt --out
refuses "--set lacks its value" "$gyre" train run.toml --set
refuses "--step is given more than once" "$gyre" eval run --step 1 --step 2

# A gyre without its engine.
mkdir alone && cp "$gyre" alone/gyre
! alone/gyre info >out.txt 2>err.txt || fail "info works without gyre-engine"
grep -qF "gyre info needs gyre-engine, which is not in $PWD/alone; build gyre with libtorch, or install its part 'engine'" err.txt ||
  fail "without gyre-engine: $(cat err.txt)"
ends 1 "gyre launch needs gyre-engine, which is not in $PWD/alone; build gyre with libtorch" alone/gyre launch -n 2 -- train run.toml
rm -r alone

# Values of flags.
refuses "--batches is -1; give 0 or more" "$gyre" eval run --batches -1
refuses "--batches is 99999999999999999999; give 0 to 9223372036854775807" "$gyre" eval run --batches 99999999999999999999
refuses "give 1 to 9223372036854775807" "$gyre" generate run --prompt a --tokens 99999999999999999999
refuses "[run] updates is 99999999999999999999; give 1 to 10000000000" "$gyre" train run.toml --out x --set run.updates=99999999999999999999
for flag in "--seed 99999999999999999999" "--threads 1025" "--shard-tokens 9999999999" "--vocab-size 1000001 --tokenizer bpe"; do
  refuses "; give " "$gyre" prepare text.txt --out x $flag
done
refuses "--seed is 99999999999999999999; give 0 to 9223372036854775807" "$gyre" prepare text.txt --out x --seed 99999999999999999999
refuses "give 0 or more" "$gyre" eval run --step -4
refuses "give 0 to 4095" "$gyre" diagnose run --draws 5000
refuses "--tokens is '1.5'; give a whole number" "$gyre" generate run --prompt a --tokens 1.5
refuses "--temperature is 'hot'; give a number" "$gyre" generate run --prompt a --temperature hot
refuses "--stages is 'x'; give a whole number" "$gyre" simulate --stages x
refuses "--stages is 99999999999; give 1 to 65536" "$gyre" simulate --stages 99999999999
refuses "--tokenizer word is unknown" "$gyre" prepare text.txt --out x --tokenizer word
refuses "--vocab-size is 5; give 300" "$gyre" prepare text.txt --out x --tokenizer bpe --vocab-size 5
refuses "--val-fraction is 2" "$gyre" prepare text.txt --out x --val-fraction 2
refuses "--memory 'lots' is not a size" "$gyre" plan run.toml --memory lots
refuses "did you mean 'grid'?" "$gyre" schedule --format gird

# Texts and vocabularies.
printf 'a' >letter.txt
for i in $(seq 0 1500); do printf "\\u$(printf %x $((0x4e00 + i))) "; done >signs.txt
refuses "pieces at most; give" "$gyre" prepare text.txt --out x --tokenizer bpe --vocab-size 50000
refuses "too short for bpe" "$gyre" prepare letter.txt --out x --tokenizer bpe --vocab-size 300
refuses "characters alone are" "$gyre" prepare signs.txt --out x --tokenizer bpe --vocab-size 300
rm -rf x

# Paths.
long=$(printf 'a%.0s' $(seq 300))
ln -s nowhere/at/all dangling
ln -s circle circle
refuses "--out: the path is empty" "$gyre" train run.toml --out ''
refuses "--out: the path is empty" "$gyre" prepare text.txt --out ''
refuses "run: the path is empty" "$gyre" eval ''
refuses "text.txt cannot be made: Not a directory" "$gyre" train run.toml --out text.txt
refuses "text.txt/deep cannot be made: Not a directory" "$gyre" train run.toml --out text.txt/deep
refuses "text.txt cannot be made: Not a directory" "$gyre" prepare text.txt --out text.txt
refuses "dangling is a link to nothing" "$gyre" train run.toml --out dangling
refuses "dangling is a link to nothing" "$gyre" train run.toml --out dangling/deep
refuses "dangling is a link to nothing" "$gyre" prepare text.txt --out dangling
refuses "File name too long" "$gyre" train run.toml --out "$long"
refuses "File name too long" "$gyre" train "$long.toml" --out x
refuses "File name too long" "$gyre" train run.toml --out x --set "data.tokens=$long"
refuses "File name too long" "$gyre" prepare "$long" --out x
refuses "File name too long" "$gyre" eval "$long"
refuses "File name too long" "$gyre" simulate --costs "$long"
refuses "File name too long" "$gyre" study "$long.toml"
refuses "symbolic links" "$gyre" eval circle
refuses "symbolic links" "$gyre" train circle --out x
refuses "nowhere/trace.json cannot be written: No such file" "$gyre" simulate --trace nowhere/trace.json
refuses "tokens cannot be written: Is a directory" "$gyre" simulate --trace tokens
refuses "nowhere/t.json cannot be written: No such file" "$gyre" train run.toml --out x --trace nowhere/t.json
refuses "tokens: is a directory without a run; give a CONFIG.toml" "$gyre" train tokens
mkdir begun published && cp run.toml begun/config.toml && echo '{}' >published/config.json
refuses "begun: is a directory; to continue the run in it: gyre train --resume begun" "$gyre" train begun
refuses "gyre import makes a run" "$gyre" train published
refuses "gyre import makes a run" "$gyre" eval published
refuses "gyre import makes a run" "$gyre" train run.toml --out x --set run.init_from=published
rm -r begun published
refuses "a run has one configuration" "$gyre" train run.toml other.toml
refuses "is given twice" "$gyre" train --resume tokens --out text-run
refuses "give a CONFIG.toml, or --resume RUN" "$gyre" train
refuses "no run is here" "$gyre" generate tokens --prompt a
refuses "cannot be opened: No such file" "$gyre" study nowhere.toml
refuses "tokens: is a directory; give text files" "$gyre" prepare tokens --out x
rm -rf x
mkdir sealed open && chmod 777 open && echo a >sealed/text.txt && cp run.toml sealed
chmod 0 sealed/text.txt sealed/run.toml && chmod 500 sealed
as_nobody=()
if [ "$(id -u)" -eq 0 ]; then
  chmod 755 . && as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  "${as_nobody[@]}" "$gyre" --version >/dev/null 2>&1 && chown -R 65534 sealed || as_nobody=()
fi
if [ "$(id -u)" -ne 0 ] || [ ${#as_nobody[@]} -gt 0 ]; then
  refuses "sealed/run cannot be written: Permission denied" "${as_nobody[@]}" "$gyre" train run.toml --out sealed/run
  refuses "sealed/run.toml: cannot be opened: Permission denied" "${as_nobody[@]}" "$gyre" train sealed/run.toml --out "$work/open/x"
  refuses "sealed/text.txt: cannot be opened: Permission denied" "${as_nobody[@]}" "$gyre" prepare sealed/text.txt --out "$work/open/x"
  chmod 0 sealed
  refuses "sealed/deep/config.toml: cannot be looked at: Permission denied" "${as_nobody[@]}" "$gyre" eval sealed/deep
  refuses "Permission denied" "${as_nobody[@]}" "$gyre" train run.toml --out sealed/run
  chmod 700 sealed
fi

# Files without an end, within 8 GB of address space.
ends_of() { (ulimit -v 8000000; exec timeout 60 "$gyre" "$@"); }
printf '{"format": "gyre-costs 1", "stages": [{"forward": 1, "backward": 1}]}' >costs.json
refuses "/dev/zero: has more than 64.0 MiB" ends_of train /dev/zero --out x
refuses "/dev/zero: has more than 64.0 MiB" ends_of study /dev/zero --out x
refuses "/dev/zero: has more than 64.0 MiB" ends_of plan run.toml --cluster /dev/zero
refuses "/dev/zero: has more than 64.0 MiB" ends_of simulate --cluster /dev/zero --costs costs.json
refuses "/dev/zero: has more than 64.0 MiB" ends_of simulate --costs /dev/zero
refuses "/dev/zero: has more than 64.0 MiB" ends_of generate run --prompt-file /dev/zero
refuses "standard input: has more than 64.0 MiB" ends_of generate run --prompt-file - </dev/zero
refuses "/dev/zero: has more than 512.0 MiB" ends_of prepare text.txt --out x --tokenizer /dev/zero
refuses "/dev/zero: has more than 512.0 MiB" ends_of train run.toml --out x --set data.tokenizer=/dev/zero

# Configurations: all faults are reported together, each on its own line; so is a configuration that fits no machine.
cat >wrong.toml <<'TOML'
[model]
widht = 3
heads = "x"
[run]
updates = 0
TOML
ends 2 "did you mean 'width'" "$gyre" train wrong.toml --out x --set run.sed=3
[ "$(wc -l <err.txt)" -eq 5 ] || fail "not all faults at once: $(cat err.txt)"
ends 2 "use at most 8 stages" "$gyre" train run.toml --out x --set data.tokens=nowhere --set pipeline.stages=9 \
  --set pipeline.schedule=gpip --set pipeline.threads_per_worker=1024
[ "$(wc -l <err.txt)" -eq 4 ] || fail "not all faults at once: $(cat err.txt)"
cat >wrong.toml <<'TOML'
[model]
layers = 0
[data]
tokens = "nowhere"
[pipeline]
schedule = "1f1c"
TOML
ends 2 "wrong.toml:2: [model] layers is 0" "$gyre" train wrong.toml --out x
grep -qF "wrong.toml:6: [pipeline] schedule '1f1c' is unknown" err.txt && grep -qF "nowhere: no prepared text is here" err.txt &&
  [ "$(wc -l <err.txt)" -eq 3 ] || fail "not all faults at once: $(cat err.txt)"
for key in model.width=1048576 model.mlp_width=16777216 pipeline.microbatch=1048576 model.layers=100000,model.width=16384; do
  sets=()
  for set in ${key//,/ }; do sets+=(--set "$set"); done
  refuses "costs most" "$gyre" train run.toml --out x "${sets[@]}"
  grep -qF "${key%%.*}] ${key#*.}" err.txt || grep -qF "at least" err.txt || fail "another key: $(cat err.txt)"
done
refuses "NUL" "$gyre" train run.toml --out x --set 'data.tokens="a\u0000b"'
[ ! -e x ] && [ ! -e open/x/train.bin ] || fail "a refused run left something behind"

# A stage's layers are named by whole blocks if it has whole blocks.
"$gyre" train --check run.toml --out x --set pipeline.stages=5 --set pipeline.schedule=1f1b >out.txt 2>&1 || fail "--check: $(cat out.txt)"
for layers in " embedding to blocks.0.attention " " blocks.0.mlp " " blocks.1 " " blocks.2 " " head "; do
  grep -qF -- "$layers" out.txt || fail "no stage of $layers: $(cat out.txt)"
done
