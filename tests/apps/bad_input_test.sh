# Bad input: exit 2, one clear line, nothing half-written.
source "$(dirname "$0")/common.sh"

[ "$("$gyre" train --help | sed -n 's/^Usage: //p')" = "gyre train [OPTIONS] [CONFIG.toml | RUN]" ] || fail "usage: $("$gyre" train --help | head -n 2)"
for command in schedule simulate prepare eval; do
  ! "$gyre" $command --help | grep -E '=\[\]|\{false\}|=-1' || fail "internals in the help of $command"
done
"$gyre" simulate --help-cluster | grep -qF '[links.NAME]' || fail "simulate --help-cluster"
refuses "did you mean 'train'?" "$gyre" trian
refuses "see gyre --help" "$gyre"
refuses "did you mean --set run.updates=3?" "$gyre" train run.toml --updates 3
refuses "did you mean 'width'?" "$gyre" train run.toml --out x --set model.widht=3
refuses "give a whole number" "$gyre" train run.toml --out x --set model.width=wide
refuses "use at most 8 stages" "$gyre" train run.toml --out x --set pipeline.stages=9
refuses "does not divide width" "$gyre" train run.toml --out x --set model.heads=5
refuses "did you mean 'pipedream'?" "$gyre" train run.toml --out x --set pipeline.schedule=pipedraem
refuses "did you mean 'adamw'?" "$gyre" train run.toml --out x --set optimizer.kind=adam
refuses "needs a schedule with a flush" "$gyre" train run.toml --out x --set optimizer.clip_scope=global
printf '%s\n' 'gyre-schedule 1' 'name early' 'stages 4' 'pipelines 1' 'workers 2' 'window 1' 'shift 1' 'kind training' 'weights stash' 'placement 0 1 0 1' \
  'owner 0 1 0 1' 'worker 0: 0F0 2F0 2B0 2U0 0B0 0U0' 'worker 1: 1F0 3F0 3B0 3U0 1B0 1U0' >early.sched
early=(--set pipeline.schedule=early.sched --set pipeline.stages=4 --set pipeline.accumulate=1)
refuses "early a worker does 2U0 before 0B0" "$gyre" train run.toml --out x "${early[@]}" --set optimizer.clip_scope=global
"$gyre" train run.toml --out early "${early[@]}" --set run.updates=2 >/dev/null 2>&1 || fail "an update before a backward, clipped by stage"
rm -r early early.sched
refuses "gyre prepare" "$gyre" train run.toml --out x --set data.tokens=nowhere
refuses "have a vocabulary of 256" "$gyre" train run.toml --out x --set model.vocabulary=200
refuses "tokens to validate on, and a sequence of [model] context 5000 needs 5001; run gyre prepare again with more text or a larger --val-fraction, or shorten the context" \
  "$gyre" train run.toml --out x --set model.context=5000 --set data.val_fraction=0.2
refuses "train.bin: has 0 tokens to validate on, and a sequence of [model] context 32 needs 33; give more text or a larger [data] val_fraction, or shorten the context" \
  "$gyre" train run.toml --out x --set data.tokens=tokens/train.bin --set data.vocabulary=256 --set data.val_fraction=0
mkdir one-token
printf 'a\0' >one-token/train.bin
refuses "train.bin: has 1 token to train on, and" \
  "$gyre" train run.toml --out x --set data.tokens=one-token --set data.vocabulary=256 --set data.val_fraction=0
refuses "needs 5001; give more text to validate on, or shorten the context" \
  "$gyre" train run.toml --out x --set model.context=5000 --set data.val_tokens=tokens/val.bin
for check in --check ""; do
  refuses "[run] prometheus is /nonexist/x.prom, which cannot be written: No such file" "$gyre" train $check run.toml --out x --set run.prometheus=/nonexist/x.prom
done
refuses "cannot be opened" "$gyre" train missing.toml --out x
for check in --check ""; do
  refuses "[pipeline] device: 'gpu' is not a device; give cpu, cuda (all that are there) or cuda:NUMBER" "$gyre" train $check run.toml --out x --set pipeline.device=gpu
  refuses "[pipeline] device: there is no xpu: libtorch was built without it; gyre info lists those that are there" "$gyre" train $check run.toml --out x --set pipeline.device=xpu
done
refuses "there is no xpu" "$gyre" plan run.toml --set pipeline.device=xpu
"$gyre" info | grep -qE '^devices +cpu' || fail "info lists no devices: $("$gyre" info)"
for flags in "" --check --resume; do
  refuses "tokens: is text that gyre prepare made, and no place for a run; choose another --out" "$gyre" train run.toml --out tokens $flags
done
refuses "no run to resume" "$gyre" train --resume --out x
refuses "no run is here" "$gyre" eval x
printf '\xfd7zXZ\0' >text.xz
refuses "text.xz: is compressed in a way that gyre does not read (it reads gzip and zstd); decompress it first, with xz -d" "$gyre" prepare text.xz --out y
for i in $(seq 700); do echo "And so it was. And so it is. And so it will be. Ten times. Or more...."; done >dots.txt
refuses "dots.txt: is not a configuration" "$gyre" train dots.txt --out x
refuses "not UTF-8 at byte 3" sh -c "printf 'abc\377' | '$gyre' prepare - --out y"
[ ! -e x ] || fail "a refused run left something behind"

cp -r tokens short
head -c 5000 tokens/train.bin >short/train.bin
refuses "truncated" "$gyre" train run.toml --out x --set data.tokens=short
[ ! -e x ] || fail "a refused run left something behind"

"$gyre" train run.toml --out run --set run.updates=40 >/dev/null 2>&1
refuses "--resume" "$gyre" train run.toml --out run
mkdir runs && cp -r run runs/run
refuses "run.toml: is a file; give the run's directory, likely runs/run" "$gyre" eval run.toml
refuses "run/config.toml: is a file; give the run's directory, likely run" "$gyre" generate run/config.toml --prompt a
refuses "run/config.toml: is a file; give the run's directory, likely run" "$gyre" top --once run/config.toml
rm -r runs
cp -r run emptied && : >emptied/config.toml
refuses "emptied/config.toml: [data] tokens is missing" "$gyre" train --resume emptied
for command in eval diagnose "generate --prompt a" "export --out hf"; do
  refuses "emptied/config.toml: [model] vocabulary is 0" "$gyre" ${command%% *} emptied ${command#"${command%% *}"}
done
rm -r emptied
refuses "[model] width is 64" "$gyre" train --resume --out run --set model.width=64
refuses "has no checkpoint of step 7" "$gyre" eval run --step 7
refuses "--prompt is empty" "$gyre" generate run --prompt ""
refuses "--device: 'gpu' is not a device" "$gyre" eval run --device gpu
cp -r run elsewhere && sed -i 's/^device = .*/device = "xpu"/' elsewhere/config.toml
refuses "there is no xpu" "$gyre" eval elsewhere
[ "$("$gyre" eval elsewhere --device cpu)" = "$("$gyre" eval run)" ] || fail "eval on the CPU of a run that was on another device"
"$gyre" generate elsewhere --prompt a --tokens 3 >/dev/null || fail "generate does not need the run's device"
rm -r elsewhere

# A flipped byte is noticed. The older checkpoint can still be used, and the run continues from it.
weights=run/checkpoints/step-00000040/model.safetensors
printf '\377' | dd of=$weights bs=1 seek=3000 conv=notrunc status=none
refuses "its checksum differs" "$gyre" generate run --prompt a
"$gyre" generate run --prompt a --step 20 --tokens 5 >/dev/null || fail "the older checkpoint does not serve"
"$gyre" train --resume --out run >/dev/null 2>err.txt || fail "exit $? with an older checkpoint: $(cat err.txt)"
grep -qF "$weights: its checksum differs; step 40 is set aside as damaged, the one before it is used" err.txt || fail "not told: $(cat err.txt)"
"$gyre" generate run --prompt a --tokens 5 >/dev/null || fail "step 40 was not made again"

# A disk that fills up: exit 4, one line, earlier checkpoints intact, nothing half-written.
code=0
(ulimit -f 90; trap '' XFSZ; exec "$gyre" train run.toml --out full --set run.updates=30) >out.txt 2>err.txt || code=$?
[ "$code" -eq 4 ] || fail "exit $code on a full disk: $(cat err.txt)"
grep -q "cannot be written" err.txt || fail "no reason given: $(cat err.txt)"
[ -z "$(find full -name '*.tmp*')" ] || fail "half-written files: $(find full -name '*.tmp*')"

# Directories whose names are not UTF-8: a run may be in one, but paths that its configuration would contain, and that
# could not be read back, are refused before the run begins.
odd=$'lat\xfcn'
"$gyre" train run.toml --out "$odd" --set run.updates=2 --json >out.txt 2>err.txt || fail "a directory that is no UTF-8: $(cat err.txt)"
"$gyre" eval "$odd" --json >>out.txt
"$gyre" export "$odd" --out "$odd-hf" --json >>out.txt
python3 -c 'import json, sys; [json.loads(line) for line in open("out.txt", encoding="utf-8")]' || fail "no JSON: $(cat out.txt)"
mkdir "$odd/inside" && cp -r run.toml tokens "$odd/inside"
cd "$odd/inside"
refuses "which is not UTF-8, as a configuration must be" "$gyre" train run.toml --out x
refuses "--set data.tokens=$odd: is not UTF-8" "$gyre" train run.toml --out x --set "data.tokens=$odd"
[ ! -e x ] || fail "something is left of a run that was refused"
cd ../..
# Nor can token files of other programs, which a run's meta.json would name.
mkdir others && cp tokens/train.bin others/$'b\xe4_train.bin'
refuses "is not UTF-8" "$gyre" train run.toml --out unnamed --set "data.tokens=others/*.bin" --set data.vocabulary=256
[ ! -e unnamed ] || fail "something is left of a run that was refused"
# What several processes are refused for reaches the user whatever bytes it names.
ends 2 "a run is here already" "$gyre" launch -n 2 -- train run.toml --out "$odd"

# Nor do names control the terminal.
control=$'a\x01b\x1b[31m\nc'
"$gyre" train run.toml --out "$control" --set run.updates=2 >out.txt 2>err.txt || fail "a directory with control characters: $(cat err.txt)"
"$gyre" train --resume "$control" --set run.updates=4 >>out.txt 2>>err.txt
grep -qF 'resuming a\x01b\x1b[31m\nc at step 2' err.txt || fail "not told printably: $(cat -v err.txt)"
cp -r tokens "$control/data"
"$gyre" train --check run.toml --out x --set "data.tokens=\"$(printf '%s' "a\\u0001b\\u001b[31m\\nc")/data\"" >>out.txt 2>>err.txt || fail "data with control characters: $(cat -v err.txt)"
grep -qF 'a\x01b\x1b[31m\nc/data: ' out.txt || fail "not shown printably: $(cat -v out.txt)"
! LC_ALL=C grep -q $'[\x01-\x08\x0e-\x1f]' out.txt err.txt || fail "control characters: $(cat -v out.txt err.txt)"
rm -r "$control"

# What a command reads, or a run has, is not written over.
refuses "another kind of file" "$gyre" train run.toml --out x --trace run.toml
refuses "another kind of file" "$gyre" simulate run.toml --trace run.toml
refuses "another kind of file" "$gyre" report run --out run/metrics.jsonl
refuses "node-exporter reads only files whose names end in .prom" "$gyre" train --check run.toml --out x --set run.prometheus=run.toml
refuses "is the tokenizer of the run in" "$gyre" prepare text.txt --out run/tokenizer --overwrite
refuses "is among the checkpoints of a run" "$gyre" export run --out run/checkpoints/step-00000007
grep -q "^layers = 3" run.toml || fail "run.toml was written over"
"$gyre" train run.toml --out cut --set data.tokens=tokens/train.bin --set data.vocabulary=256 --set run.updates=2 >/dev/null 2>&1
refuses "it would validate on tokens that it was trained on" "$gyre" train --resume cut --set data.val_fraction=0.3 --set run.updates=4

# Weights that are not finite are no model; such as make a loss that is not finite have no validation loss.
"$gyre" export run --out hf >/dev/null
fill() {
  python3 - hf/model.safetensors "$1" <<'PYTHON'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
begin = 8 + struct.unpack("<Q", data[:8])[0]
data[begin:] = struct.pack("<f", float(sys.argv[2])) * ((len(data) - begin) // 4)
open(sys.argv[1], "wb").write(data)
PYTHON
}
fill nan
refuses "has values that are not finite numbers" "$gyre" import hf --out nan
fill 1e38
"$gyre" import hf --out nan >/dev/null
ends 3 "the validation loss is not finite" "$gyre" eval nan --data tokens
