# gyre prepare on files of the usual compressors, its progress, and faulty lines.
source "$(dirname "$0")/common.sh"
same() { for file in train.bin val.bin meta.json; do cmp "$1/$file" "$2/$file" || fail "$2 differs from $1"; done; }

gzip -k text.txt
"$gyre" prepare text.txt.gz --out packed >out.txt 2>err.txt
same tokens packed
[ ! -s err.txt ] || fail "a short preparation says something: $(cat err.txt)"
gzip -c text.txt | "$gyre" prepare - --out from-pipe >/dev/null
same tokens from-pipe
if command -v zstd >/dev/null; then
  zstd -q text.txt
  "$gyre" prepare text.txt.zst --out packed-zstd >/dev/null
  same tokens packed-zstd
fi
head -c 1000 text.txt.gz >cut.gz
refuses "cut.gz: is cut short" "$gyre" prepare cut.gz --out bad

# Documents: one per line of JSON, or between separators as a shell writes them.
for i in $(seq 1 50); do printf '{"text": "document %d"}\n' "$i"; done >lines.jsonl
for i in $(seq 1 50); do printf 'document %d\n\n\n' "$i"; done >separated.txt
"$gyre" prepare lines.jsonl --out lines --threads 2 >/dev/null
"$gyre" prepare separated.txt --separator '\n\n\n' --out separated >out.txt
grep -q " 50 documents" out.txt || fail "$(cat out.txt)"
same lines separated
echo '{"text": "half' >>lines.jsonl
refuses "--separator is empty; leave it out" "$gyre" prepare separated.txt --separator '' --out bad
refuses "lines.jsonl:51: the line is no JSON" "$gyre" prepare lines.jsonl --out bad
refuses "lines.jsonl:1: the object has no 'content' (it has: text)" "$gyre" prepare lines.jsonl --field content --out bad
[ ! -e bad ] && [ ! -e bad.preparing ] || fail "something was left"
