# gyre diagnose finds bases of its own for a run without any, also of sides at which LAPACK's decomposition in fp32
# fails. Slow: it decomposes two matrices of 2944 x 2944.
source "$(dirname "$0")/common.sh"

"$gyre" train run.toml --out long --set model.layers=1 --set model.mlp_width=2944 --set run.updates=1 --set optimizer.kind=adamw \
  --set optimizer.warmup=0 >/dev/null 2>err.txt || fail "train: $(tail -n 1 err.txt)"
"$gyre" diagnose long --draws 15 --updates 1 >out.txt 2>err.txt || fail "diagnose: $(tail -n 1 err.txt)"
[ ! -s err.txt ] && grep -q "[0-9]" out.txt || fail "diagnose says: $(cat out.txt err.txt)"
