# gyre serve: prints an address that answers, ends in order, refuses bad input in one line, and changes no bit of a run.
. "$(dirname "$0")/common.sh"

# start_serving WHAT...: starts gyre serve in the background; sets pid and url.
start_serving() {
  : >served.txt
  "$gyre" serve "$@" >served.txt 2>serving.txt &
  pid=$!
  while kill -0 $pid 2>/dev/null && ! grep -q / served.txt; do read -rt 0.02 <> <(:) || true; done
  url=$(cat served.txt)
  [ -n "$url" ] || fail "no address: $(cat serving.txt)"
}
# ask PATH-BEHIND-URL [WORDS-OF-PYTHON]: prints the status of the answer; its text is in answer.txt.
ask() {
  python3 - "$url$1" <<'PY'
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=60)
except urllib.error.HTTPError as error:
    answer = error
open("answer.txt", "wb").write(answer.read())
print(answer.status)
PY
}

# A run that has just begun, then one with curves; a wrong token; the end by a signal.
"$gyre" train run.toml --out run --set run.updates=20 >/dev/null 2>&1
mkdir new
cp run/config.toml new
start_serving new --port 0
grep -q "^serving 1 run; Ctrl-C ends it$" serving.txt || fail "says: $(cat serving.txt)"
grep -q "no update is recorded yet" serving.txt || fail "not told: $(cat serving.txt)"
[ "$(ask "")" = 200 ] && grep -q "<!doctype html>" answer.txt || fail "no page"
[ "$(ask data)" = 200 ] && grep -q "no update is recorded yet" answer.txt || fail "no data: $(cat answer.txt)"
cp run/metrics.jsonl new
until [ "$(ask data)" = 200 ] && grep -q '"steps":20' answer.txt; do read -rt 0.1 <> <(:) || true; done
(url=${url%?????/}00000/; [ "$(ask data)" = 403 ]) || fail "a wrong token: $(cat answer.txt)"
refuses "port $(sed -E 's|.*:([0-9]+)/.*|\1|' <<<"$url") of 127.0.0.1 is taken" "$gyre" serve run --port "$(sed -E 's|.*:([0-9]+)/.*|\1|' <<<"$url")"
kill -TERM $pid
code_of $pid
[ "$code" -eq 143 ] || fail "exit $code after SIGTERM: $(cat serving.txt)"

# Ctrl-C; a study that has no results yet.
mkdir -p study/runs/adamw-p1
cp -r run study/runs/adamw-p1/lr0.1-seed1
start_serving study --port 0
[ "$(ask data)" = 200 ] && grep -q "the study has no results yet" answer.txt || fail "no study: $(cat answer.txt)"
kill -INT $pid
code_of $pid
[ "$code" -eq 130 ] || fail "exit $code after SIGINT: $(cat serving.txt)"

# With another address, a message says what this means.
start_serving run --port 0 --address 0.0.0.0
grep -q "whoever can reach it there and has this address sees the report" serving.txt || fail "not told: $(cat serving.txt)"
kill -TERM $pid
code_of $pid

# A thousand requests during a run: its bits are those of a run without them.
"$gyre" train run.toml --out alone >/dev/null 2>&1
"$gyre" train run.toml --out watched >/dev/null 2>&1 &
trainer=$!
until [ -e watched/config.toml ]; do kill -0 $trainer || fail "the run ended"; read -rt 0.02 <> <(:) || true; done
start_serving watched --port 0
python3 - "$url" <<'PY' || fail "requests"
import sys, threading, urllib.request
def ask():
    for i in range(125):
        assert urllib.request.urlopen(sys.argv[1] + ["data", "timelines", ""][i % 3], timeout=60).status == 200
        done.append(1)
done = []
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit(0 if len(done) == 1000 else 1)
PY
code_of $trainer
[ "$code" -eq 0 ] || fail "the run that was watched: exit $code"
same_run alone watched "watched"
[ "$(cd watched && find . -not -name '*.tmp*' | sort)" = "$(cd alone && find . | sort)" ] || fail "other files: $(cd watched && find . | sort)"
kill -TERM $pid
code_of $pid

# Bad input.
mkdir nothing damaged
cp run/config.toml damaged
echo 'no line of metrics' >damaged/metrics.jsonl
refuses "is not there" "$gyre" serve absent
refuses "neither a run" "$gyre" serve nothing
refuses "damaged/metrics.jsonl:1: is not a line of metrics" "$gyre" serve damaged
refuses "is no trace" "$gyre" serve text.txt
refuses "--port is 65536; give 0 to 65535" "$gyre" serve run --port 65536
refuses "--address is 'localhost'" "$gyre" serve run --address localhost
refuses "192.0.2.1 is no address of this machine" "$gyre" serve run --address 192.0.2.1
refuses "serve" "$gyre" serve
