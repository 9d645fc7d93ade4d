# Output that cannot be written. If a result is lost, every command gives exit 1 and one line. Lost messages do not
# matter: the run goes on, and its checkpoints are those of an undisturbed run.
source "$(dirname "$0")/common.sh"

# Descriptor 9 is a pipe whose reader has gone.
mkfifo pipe
exec 8<>pipe 9>pipe 8<&-

short="--set run.updates=6 --set run.checkpoint_every=3 --set run.eval_every=3"
"$gyre" train run.toml --out whole $short >whole.txt 2>/dev/null || fail "the undisturbed run"

# undisturbed WHAT: metrics are whole lines, and losses and the last checkpoint are bit for bit those of the undisturbed
# run.
undisturbed() {
  diff <(losses whole) <(losses fresh) >difference || fail "$1: losses differ: $(head -n 3 difference)"
  [ "$(grep -cv '^{.*}$' fresh/metrics.jsonl)" -eq 0 ] || fail "$1: foreign lines in metrics.jsonl"
  for file in model optimizer; do
    cmp {whole,fresh}/checkpoints/step-00000006/$file.safetensors || fail "$1: $file.safetensors differs"
  done
}

# loses_results COMMAND...: for every reason that standard output cannot be written, exit 1 and a single line on stderr.
loses_results() {
  local way
  for way in '>/dev/full' '>&9' '>&-'; do
    local code=0
    rm -rf fresh
    eval '"$@"' "$way" 2>err.txt || code=$?
    [ "$code" -eq 1 ] || fail "exit $code instead of 1: $* $way: $(cat err.txt)"
    [ "$(grep -c "cannot be written to standard output" err.txt)" -eq 1 ] || fail "no reason: $* $way: $(cat err.txt)"
  done
}

# loses_messages COMMAND...: for every reason that stderr cannot be written, exit 0.
loses_messages() {
  local way
  for way in '2>/dev/full' '2>&9' '2>&-'; do
    rm -rf fresh
    eval '"$@"' "$way" >out.txt || fail "exit $?: $* $way"
    [ -s out.txt ] || fail "no result: $* $way"
    [ "$1 $2" != "$gyre train" ] || undisturbed "$way"
  done
}

cat run.toml - >study.toml <<'TOML'
[study]
stages = [1]
learning_rates = [1e-3]
smooth = 1
[[study.method]]
name = "AdamW"
set = ["run.updates=2", "run.eval_every=0"]
TOML
"$gyre" export whole --out hf >/dev/null 2>err.txt || fail "export: $(tail -n 1 err.txt)"
"$gyre" study study.toml --out study >/dev/null 2>err.txt || fail "study: $(tail -n 1 err.txt)"

commands=(
  "--help" "--version" "schedule --help"
  "prepare text.txt --out fresh"
  "schedule --stages 3" "simulate --stages 3"
  "study study.toml --out study"
  "init" "report whole --out fresh.html" "top whole --once" "top whole --json"
  "import hf --out fresh" "export whole --out fresh" "launch -n 2 -- train run.toml --out fresh --set run.updates=1"
  "info" "plan run.toml --set optimizer.basis-rotation.interval=1"
  "eval whole" "generate whole --prompt verse --tokens 3" "diagnose whole --draws 15 --updates 1"
)
for command in "${commands[@]}"; do
  loses_results "$gyre" $command
done
loses_messages "$gyre" study study.toml --out study
loses_messages "$gyre" eval whole

train="train run.toml --out fresh $short"
loses_results "$gyre" $train
undisturbed "train >&-"
loses_messages "$gyre" $train

# All descriptors closed, and all of them a pipe that closes.
code=0
rm -rf fresh
"$gyre" $train <&- >&- 2>&- || code=$?
[ "$code" -eq 1 ] || fail "exit $code with all descriptors closed"
undisturbed "all descriptors closed"
rm -rf fresh
"$gyre" $train 2>&1 | head -n 1 >/dev/null || true
undisturbed "2>&1 | head -n 1"

# An error that cannot be printed still gives its exit code, and so does a text that cannot be read.
code=0
"$gyre" train absent.toml --out fresh 2>/dev/full || code=$?
[ "$code" -eq 2 ] || fail "exit $code instead of 2"
code=0
"$gyre" prepare - --out unread <&- 2>err.txt || code=$?
[ "$code" -eq 2 ] || fail "exit $code when standard input is closed: $(cat err.txt)"
