# A CPU without bf16 instructions, which oneDNN is told to assume: runs say so once, train to nearly the same losses,
# and the executors still agree bit for bit. One without AVX-512: runs train too.
source "$(dirname "$0")/common.sh"

train() {
  "$gyre" train run.toml --out "$1" --set run.updates=40 --set pipeline.executor="$2" >"$1.out" 2>&1 || fail "training $1"
}
train with threads
export ONEDNN_MAX_CPU_ISA=AVX512_CORE
"$gyre" info --json >info.json || fail "info"
grep -qF '"bf16_products":"in fp32 (' info.json || fail "info does not say how bf16 products are made: $(cat info.json)"
train without threads
train replayed replay
[ "$(grep -c 'bf16 products: in fp32 (.*); training takes about as long as in fp32$' without.out)" -eq 1 ] || fail "not said once, with what it costs: $(cat without.out)"

same=checkpoints/step-00000040
same_tensors "without/$same" "replayed/$same" "threads and replay without instructions"
export ONEDNN_MAX_CPU_ISA=AVX2
train narrow threads
last() { grep '"event":"step"' "$1/metrics.jsonl" | tail -n 1 | sed -E 's/.*"loss":([0-9.]+).*/\1/'; }
for run in without narrow; do
  awk -v a="$(last with)" -v b="$(last $run)" 'BEGIN { exit !(a > 0 && (a - b) / a < 0.02 && (b - a) / a < 0.02) }' ||
    fail "losses are $(last with) and $(last $run)"
done
