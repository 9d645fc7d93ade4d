# gyre import and gyre export: a refused import or export leaves nothing behind; an imported model trains like the
# original.
source "$(dirname "$0")/common.sh"

cat >model.toml <<'TOML'
[model]
kind = "llama"
layers = 4
width = 32
heads = 4
context = 32
bias = false
activation = "silu"
[model.llama]
key_value_heads = 2
[data]
tokens = "tokens"
[pipeline]
schedule = "pipedream"
stages = 1
microbatch = 4
accumulate = 2
[optimizer]
lr = 3e-3
[run]
updates = 20
precision = "fp32"
TOML
"$gyre" train model.toml --out first >/dev/null 2>&1
"$gyre" export first --out model >/dev/null
[ -e model/tokenizer.json ] || fail "the tokenizer was not exported"
# Imported with its tokenizer: the original data counts as the run's own, and no message speaks of another tokenizer.
"$gyre" import model --out round >said.txt
grep -q '^tokenizer: tokenizer.json, 256 tokens; "<|endoftext|>" (0) ends documents$' said.txt || fail "which tokenizer: $(cat said.txt)"
[ -e round/tokenizer/tokenizer.json ] || fail "the tokenizer was not imported"
"$gyre" eval round --data tokens >/dev/null 2>err.txt || fail "an imported run and its own data: $(cat err.txt)"
"$gyre" train round/train.toml --set data.tokens=tokens --set run.updates=1 --out on >/dev/null 2>err.txt
grep -q "^weights .*round, step 0$" err.txt || fail "whose weights: $(cat err.txt)"
sed 's/<|endoftext|>/<|end|>/' model/tokenizer.json >another.json
"$gyre" prepare text.txt --out others --tokenizer another.json --end-of-document "<|end|>" >/dev/null
refuses "others: its tokenizer.json is not what this run was begun with" "$gyre" eval round --data others
"$gyre" train round/train.toml --set data.tokens=others --set run.updates=1 --out other >/dev/null 2>err.txt
grep -q "^weights .*round, step 0; its tokenizer is another than that of the tokens$" err.txt || fail "another tokenizer: $(cat err.txt)"
rm model/*token*  # the tests below are about models without tokenizers
"$gyre" import model --out imported >/dev/null
rest=(--set pipeline.stages=4 --set run.checkpoint_every=10)

# 20 updates through four stages, from the imported model and from gyre's own checkpoint, give the same bits. Only the
# weights are taken over; the optimizer begins anew.
"$gyre" train model.toml --out theirs "${rest[@]}" --set run.init_from=imported 2>err.txt >/dev/null || fail "$(cat err.txt)"
grep -q "weights .*imported, step 0" err.txt || fail "it is not said whose weights: $(cat err.txt)"
"$gyre" train model.toml --out ours "${rest[@]}" --set run.init_from=first >/dev/null 2>&1
"$gyre" train model.toml --out drawn "${rest[@]}" >/dev/null 2>&1
diff <(losses theirs) <(losses ours) >/dev/null || fail "imported and own weights train differently"
same_tensors theirs/checkpoints/step-00000020 ours/checkpoints/step-00000020 "imported and own weights"
first_loss() { losses "$1" | head -n 1; }
[ "$(first_loss drawn)" != "$(first_loss ours)" ] || fail "the weights were drawn all the same"

# A checkpoint given by its path; train.toml; and in place, since the imported run has a checkpoint of its own.
"$gyre" train model.toml --out named "${rest[@]}" --set run.init_from=first/checkpoints/step-00000020 >/dev/null 2>&1
diff <(losses named) <(losses ours) >/dev/null || fail "a run and its newest checkpoint differ"
"$gyre" train imported/train.toml --set data.tokens=tokens --set run.updates=2 --out next >/dev/null 2>&1
grep -q "rope_theta" next/hugging_face/config.json || fail "what the model came with was not taken along"
cp -r imported in_place
"$gyre" train --resume in_place --set data.tokens=tokens --set run.updates=2 >/dev/null 2>&1
diff <(losses in_place) <(losses next) >/dev/null || fail "a run of an imported model is not what train.toml makes"
# In two processes, each of which reads its own parts.
"$gyre" launch -n 2 -- train model.toml --out processes "${rest[@]}" --set run.init_from=imported >/dev/null 2>&1
diff <(losses processes) <(losses ours) >/dev/null || fail "two processes begin with other weights"
# A resumed run does not need the weights that it began with.
mv imported gone
"$gyre" train --resume theirs --set run.updates=22 >/dev/null 2>&1 || fail "a run needs what it began with"
mv gone imported

# Evaluating and generating with an imported run, which has no data.
"$gyre" eval imported --data tokens --json >/dev/null
refuses "imported; give --data" "$gyre" eval imported
refuses "no tokenizer" "$gyre" generate imported --prompt a
refuses "[data] tokens is missing" "$gyre" train imported/train.toml --out never

# The new run must have the model's shape.
refuses "[model] width is 64" "$gyre" train model.toml --out never --set run.init_from=imported --set model.width=64
refuses "neither a run with a checkpoint" "$gyre" train model.toml --out never --set run.init_from=tokens
refuses "neither a run with a checkpoint" "$gyre" train --check model.toml --set run.init_from=nowhere
[ ! -e never ] || fail "something of a run that was refused"
# With rotary positions another context is accepted, and other positions where they are given.
"$gyre" train --check model.toml --set run.init_from=imported --set model.context=16 >/dev/null 2>&1
"$gyre" train model.toml --out longer --set run.init_from=imported --set model.context=64 --set run.updates=1 \
  --set model.llama.rope_theta=500 --set model.llama.rope_scaling=linear --set model.llama.rope_factor=2 >/dev/null 2>&1 ||
  fail "other rotary positions"
refuses "[model] rope_theta is 10000.0, but" "$gyre" train model.toml --out never --set run.init_from=longer \
  --set model.llama.rope_scaling=linear --set model.llama.rope_factor=2
refuses "[model] rope_scaling is \"none\", but" "$gyre" train model.toml --out never --set run.init_from=longer \
  --set model.llama.rope_theta=500

# Files that are not a model of transformers, or only part of one. refused WORDS COMMAND: `command` changes the copy
# `bad`.
refused() {
  local words=$1
  shift
  rm -rf bad && cp -r model bad
  (cd bad && eval "$@")
  refuses "$words" "$gyre" import bad --out never
  [ ! -e never ] && [ ! -e never.importing ] || fail "something of an import that was refused: $words"
}
refused "no config.json" 'rm config.json'
refused "is not JSON" 'echo "{" >config.json'
refused "must be an object" 'echo "[]" >config.json'
refused "'model_type' is missing" 'echo "{}" >config.json'
refused "'model_type' is \"gemma\"; gyre has bert, gpt2" 'sed -i s/\"llama\"/\"gemma\"/ config.json'
refused "LlamaForSequenceClassification" 'sed -i s/LlamaForCausalLM/LlamaForSequenceClassification/ config.json'
refused "'hidden_size' is missing" 'sed -i /hidden_size/d config.json'
refused "'hidden_size' must be a whole number" 'sed -i "s/\"hidden_size\": 32/\"hidden_size\": \"32\"/" config.json'
refused "'rope_scaling': 'rope_type' is \"yarn\"" \
  'sed -i "s/\"rope_scaling\": null/\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 8}/" config.json'
refused "'attention_bias' is true" 'sed -i "s/\"attention_bias\": false/\"attention_bias\": true/" config.json'
refused "'hidden_act' is \"relu\"" 'sed -i "s/\"silu\"/\"relu\"/" config.json'
refused "'use_sliding_window' is true" 'sed -i "s/\"mlp_bias\"/\"use_sliding_window\": true, \"mlp_bias\"/" config.json'
refused "'quantization_config' is" 'sed -i "s/\"mlp_bias\"/\"quantization_config\": {\"bits\": 4}, \"mlp_bias\"/" config.json'
refused "by config.json it should be 64 x 32" 'sed -i "s/\"vocab_size\": 256/\"vocab_size\": 64/" config.json'
refused "describes a model that gyre does not have: [model] heads" \
  'sed -i "s/\"num_attention_heads\": 4/\"num_attention_heads\": 5/;/head_dim/d" config.json'
refused "lacks 'model.layers.4" 'sed -i "s/\"num_hidden_layers\": 4/\"num_hidden_layers\": 5/" config.json'
refused "differs from the matrix that it is tied to" \
  'sed -i "s/\"tie_word_embeddings\": false/\"tie_word_embeddings\": true/" config.json'
refused "is not a tensor of a llama" 'sed -i "s/\"num_hidden_layers\": 4/\"num_hidden_layers\": 3/" config.json'
refused "neither model.safetensors nor" 'rm model.safetensors'
refused "pytorch_model.bin is not read" 'rm model.safetensors; echo >pytorch_model.bin'
refused "model.safetensors: not a sound safetensors file" 'truncate -s 5000 model.safetensors'
refused "model.safetensors: not a sound safetensors file" 'head -c 4000 /dev/urandom >model.safetensors'
refused "neither model.safetensors nor" 'mv model.safetensors tensors.safetensors'
refuses "model/model.safetensors: is a file; give the model's directory, likely model" "$gyre" import model/model.safetensors --out never
refuses "no config.json" "$gyre" import nowhere --out never
refuses "not empty" "$gyre" import model --out first
refuses "cannot be made" "$gyre" import model --out text.txt
refuses "--context is 64" "$gyre" import model --out never --context 64
[ ! -e never ] || fail "something of an import that was refused"

# The same for a model in shards.
"$gyre" export first --out shards --shard-size 20KB >/dev/null
index=shards/model.safetensors.index.json
last=$(cd shards && ls model-*.safetensors | tail -n 1)
"$gyre" import shards --out from_shards >/dev/null
same_tensors from_shards/checkpoints/step-00000000 imported/checkpoints/step-00000000 "shards"
rm -rf model && cp -r shards model
refused "$last: is missing" "rm $last"
refused "not a sound safetensors file" "truncate -s 100 $last"
refused "is not JSON" 'echo nothing >model.safetensors.index.json'
refused "'weight_map' is missing" 'echo "{\"metadata\": {\"total_size\": 1}}" >model.safetensors.index.json'
refused "is not the name of a file beside it" "sed -i 's|$last|../$last|' model.safetensors.index.json"
refused "model.safetensors.index.json does not name, or says is in another file" \
  "sed -i 's/lm_head.weight/lm_head.w/' model.safetensors.index.json"

# Export.
refuses "no run is here" "$gyre" export tokens --out never
refuses "not empty" "$gyre" export first --out shards
refuses "no checkpoint of step 7; there are: 20" "$gyre" export first --out never --step 7
refuses "--shard-size many is not a size" "$gyre" export first --out never --shard-size many
refuses "--dtype" "$gyre" export first --out never --dtype fp8
"$gyre" train run.toml --out bert --set model.kind=bert --set model.bert.norm=pre --set run.updates=1 \
  --set run.eval_every=0 >/dev/null 2>&1
refuses "norms after its branches" "$gyre" export bert --out never
[ ! -e never ] && [ ! -e never.exporting ] || fail "something of an export that was refused"

# A killed import leaves nothing under the final name, and what it left does not stop the next attempt.
mkdir killed.importing && echo half >killed.importing/config.toml
"$gyre" import shards --out killed >/dev/null
[ ! -e killed.importing ] && [ -e killed/config.toml ] || fail "what a kill left is in the way"

# llm.c: a GPT-2 goes out as its model file and comes back; the run that begins with it has the same weights.
"$gyre" train model.toml --out gpt --set model.kind=gpt --set model.bias=true --set model.activation=gelu-tanh --set model.tie=true \
  --set run.updates=2 >/dev/null 2>&1
"$gyre" export gpt --format llm.c --out llmc >said.txt
grep -q '^llmc: a gpt2 of .* parameters in 1 file, from step 2$' said.txt || fail "what was exported: $(cat said.txt)"
"$gyre" export gpt --out huggingface >/dev/null
"$gyre" import llmc/model.bin --out from_llmc --tokenizer huggingface >said.txt || fail "an own model of llm.c"
grep -q '^tokenizer: huggingface, 256 tokens; "<|endoftext|>" (0) ends documents$' said.txt || fail "which tokenizer: $(cat said.txt)"
"$gyre" generate from_llmc --prompt "It was" --tokens 4 >/dev/null || fail "no text from a model of llm.c"
"$gyre" export from_llmc --format llm.c --out again >/dev/null
cmp llmc/model.bin again/model.bin || fail "a model of llm.c changed"
refuses "[model] kind = \"gpt\", not \"llama\"" "$gyre" export first --format llm.c --out none
refuses "shard-size is for --format transformers" "$gyre" export gpt --format llm.c --shard-size 1GB --out none
refuses "is there already, and is not empty" "$gyre" export gpt --format llm.c --out llmc
head -c 2000 llmc/model.bin >short.bin
refuses "short.bin: is truncated: its header says" "$gyre" import short.bin --out none
refuses "text.txt: is a file; give the model's directory" "$gyre" import text.txt --out none
[ ! -e none ] || fail "a refused command left something"
echo ok
