# gyre report: a page of runs, of a trace and of a run that has just begun; bad input is one line.
. "$(dirname "$0")/common.sh"

"$gyre" train run.toml --out run --set run.updates=20 --trace trace.json >/dev/null 2>&1
"$gyre" report run trace.json --out page.html >out.txt 2>err.txt
[ "$(cat out.txt)" = "page.html: 1 run, 1 timeline" ] || fail "says: $(cat out.txt)"
[ ! -s err.txt ] || fail "complains: $(cat err.txt)"
grep -q '"name":"run"' page.html || fail "no run in the page"
last=$(grep '"event":"step"' run/metrics.jsonl | tail -n 1 | sed -E 's/.*"loss":([^,]*),.*/\1/')
grep -qF "$last]" page.html || fail "the last loss, $last, is not in the page"
"$gyre" report run --out again.html >/dev/null
grep -q '"simulated":true' again.html || fail "a run without a trace is not simulated"
cp trace.json run/trace.json
"$gyre" report run --out again.html >/dev/null
grep -q '"simulated":false' again.html || fail "a run's trace.json is not shown"
"$gyre" report run --out again2.html >/dev/null
cmp again.html again2.html || fail "the same report twice differs"

# What it lacks is said in a line, and it is made all the same.
: >run/metrics.jsonl
"$gyre" report run --out page.html >/dev/null 2>err.txt
[ "$(cat err.txt)" = "run: no update is recorded yet: there are no curves of it" ] || fail "says: $(cat err.txt)"

# Bad input; the page that was there stays.
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
