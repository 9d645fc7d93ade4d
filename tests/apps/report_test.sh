# gyre report: a page of runs, of a trace and of a run that has just begun; bad input is one line.
. "$(dirname "$0")/common.sh"

"$gyre" train run.toml --out run --set run.updates=20 --trace trace.json >/dev/null 2>&1
"$gyre" report run trace.json --out page.html >out.txt 2>err.txt
[ "$(cat out.txt)" = "page.html: 1 run, 1 timeline" ] || fail "says: $(cat out.txt)"
[ ! -s err.txt ] || fail "complains: $(cat err.txt)"
grep -q '"name":"run"' page.html || fail "no run in the page"
last=$(grep '"event":"step"' run/metrics.jsonl | tail -n 1 | sed -E 's/.*"loss":([^,]*),.*/\1/')
# Numbers of curves have a float's digits.
shown=$(sed -E 's/.*"name":"loss",[^}]*"value":\[[^]]*,([^],]*)\].*/\1/' page.html | grep -E '^[0-9.e+-]+$')
python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 1e-6 * abs(b))' "$shown" "$last" ||
  fail "the last loss of the page is $shown instead of $last"
"$gyre" report run --out again.html >/dev/null
grep -q '"simulated":true' again.html || fail "a run without a trace is not simulated"
cp trace.json run/trace.json
"$gyre" report run --out again.html >/dev/null
grep -q '"simulated":false' again.html || fail "a run's trace.json is not shown"
"$gyre" report run --out again2.html >/dev/null
cmp again.html again2.html || fail "the same report twice differs"

# Output through a link goes to its target, and output to a special file goes there, as with any tool.
echo "<!doctype html>old" >real.html
ln -s real.html link.html
"$gyre" report run --out link.html >/dev/null
[ -L link.html ] || fail "a link was replaced"
cmp real.html again.html || fail "what the link leads to is not the report"
"$gyre" report run --out /dev/stdout | cat >piped
head -c "$(wc -c <again.html)" piped | cmp - again.html || fail "not the report in a pipe"
{ echo before; "$gyre" report run --out /dev/stdout; } >all.txt
{ echo before; cat again.html; echo "/dev/stdout: 1 run, 1 timeline"; } | cmp - all.txt || fail "not what was to be in a file"
mkfifo pipe
cat pipe >piped.html &
"$gyre" report run --out pipe >/dev/null
wait $!
cmp piped.html again.html || fail "not the report in a named pipe"
refuses "Is a directory" "$gyre" report run --out run
# This test creates its own devices and must not touch the machine's.
if mknod null c 1 3 2>/dev/null && mknod full c 1 7 && true 2>/dev/null >null; then
  "$gyre" report run --out null >/dev/null
  ends 4 "full: cannot be written: No space left on device" "$gyre" report run --out full
  ends 4 "full: cannot be written: No space left on device" "$gyre" simulate --microbatches 4 --trace full
  ends 4 "full: cannot be written: No space left on device" "$gyre" train run.toml --out traced --set run.updates=2 --trace full
  [ -c null ] && [ -c full ] || fail "a device was replaced"
fi

# A name that would control a terminal is shown.
name=$'esc\e[1m'
cp -r run "$name"
{ "$gyre" report "$name" --out "$name.html"; "$gyre" top --once "$name"; } >out.txt
grep -qF 'esc\x1b[1m.html: 1 run' out.txt && grep -qF 'gyre top esc\x1b[1m' out.txt && ! grep -q $'\e' out.txt || fail "says: $(cat -v out.txt)"

# Missing data is reported in one line, and the page is made all the same.
: >run/metrics.jsonl
"$gyre" report run --out page.html >/dev/null 2>err.txt
[ "$(cat err.txt)" = "run: no update is recorded yet: there are no curves of it" ] || fail "says: $(cat err.txt)"

# Bad input; the existing page stays.
before=$(cksum <page.html)
mkdir nothing
refuses "is not there" "$gyre" report absent --out page.html
refuses "neither a run" "$gyre" report nothing --out page.html
refuses "is no trace" "$gyre" report text.txt --out page.html
refuses "has no slices" "$gyre" report <(echo '{"traceEvents":[]}') --out page.html
refuses "report" "$gyre" report --out page.html
refuses "absent" "$gyre" report run --out absent/page.html
echo 'no line of metrics' >run/metrics.jsonl
refuses "run/metrics.jsonl:1: is not a line of metrics" "$gyre" report run --out page.html
[ "$(cksum <page.html)" = "$before" ] || fail "the page was changed"
