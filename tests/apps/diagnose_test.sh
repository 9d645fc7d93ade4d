# gyre diagnose of a model without gradients, and of a run without bases: it finds some of its own, also of sides at
# which LAPACK's decomposition in fp32 fails. Slow: it decomposes two matrices of 2944 x 2944.
source "$(dirname "$0")/common.sh"

# With one token there is nothing to learn: the Hessian is 0, and has no ratio.
mkdir one
for part in train val; do head -c 4000 /dev/zero >one/$part.bin; done
"$gyre" train run.toml --out still --set data.tokens=one --set data.vocabulary=1 --set run.updates=2 >/dev/null 2>err.txt ||
  fail "train: $(tail -n 1 err.txt)"
"$gyre" diagnose still --draws 15 --updates 1 >out.txt 2>err.txt || fail "diagnose: $(tail -n 1 err.txt)"
grep -q "ratio -$" out.txt || fail "diagnose says: $(cat out.txt err.txt)"

"$gyre" train run.toml --out long --set model.layers=1 --set model.mlp_width=2944 --set run.updates=1 --set optimizer.kind=adamw \
  --set optimizer.warmup=0 >/dev/null 2>err.txt || fail "train: $(tail -n 1 err.txt)"
"$gyre" diagnose long --draws 15 --updates 1 >out.txt 2>err.txt || fail "diagnose: $(tail -n 1 err.txt)"
! grep -qv "Hessian products computed" err.txt && grep -q "[0-9]" out.txt || fail "diagnose says: $(cat out.txt err.txt)"
