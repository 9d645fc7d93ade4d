// The whole model in one stage reads the prompt, then one new token at a time.
#include "gyre/inspect/generate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "gyre/build/build.h"
#include "gyre/core/error.h"
#include "gyre/core/random.h"
#include "gyre/core/text.h"
#include "gyre/core/utf8.h"
#include "gyre/inspect/decoder.h"
#include "gyre/model/stage.h"

namespace gyre {
namespace {

void check(const ModelSettings& model) {
  const ModelKind& kind = model_kinds().at(model.kind);
  if (kind.continues_text) return;
  std::vector<std::string> others;
  for (const ModelKind& other : model_kinds().all()) {
    if (other.continues_text) others.push_back(other.name);
  }
  throw InputError(fmt::format("a {} cannot continue a text ({}); gyre generate needs a run of one that can: {}",
                               kind.name, kind.meaning, join(others, ", ")));
}

void check(const GenerateOptions& options) {
  if (options.prompt.empty()) throw InputError("--prompt is empty; give at least one character to continue");
  if (options.tokens < 1) throw InputError(fmt::format("--tokens is {}; give at least 1", options.tokens));
  check(options.sampling);
}

// Copies, since a training run may remove the checkpoint's file while the text is written.
std::vector<at::Tensor> compute_weights(const TrainedModel& model, const Stage& stage) {
  const at::ScalarType compute = compute_type(model.config);
  std::vector<at::Tensor> weights;
  for (const ParameterSpec& spec : stage.parameters()) {
    weights.push_back(model.checkpoint.weights.at(spec.name).to(compute, /*non_blocking=*/false, /*copy=*/true));
  }
  return stage.all_of(weights);
}

std::vector<int32_t> last_of(const std::vector<int32_t>& tokens, size_t most) {
  return {tokens.end() - static_cast<ptrdiff_t>(std::min(most, tokens.size())), tokens.end()};
}

}  // namespace

void generate(const TrainedModel& model, const GenerateOptions& options,
              const std::function<void(std::string_view)>& write) {
  check(model.config.model);
  check(options);
  if (!model.tokenizer) {
    throw InputError(
        "the run has no tokenizer: its tokens were others' files, or its model was imported without one; train it on "
        "tokens that gyre prepare made, or with [data] tokenizer");
  }
  std::vector<int32_t> unread;
  model.tokenizer->encode(options.prompt, unread);
  if (unread.empty()) {
    throw InputError("--prompt gives no tokens: the run's tokenizer leaves out all that is in it; give another text");
  }
  const Stage stage(build_layers(model.config), 0);
  Decoder decoder(stage, compute_weights(model, stage), model.config.model.context);

  // New tokens are decoded together with the last ones of the prompt, since a tokenizer may write the first word of a
  // text differently.
  constexpr size_t kBefore = 8, kMost = 64;
  std::vector<int32_t> fresh = last_of(unread, kBefore);
  size_t written = model.tokenizer->decode(fresh).size();
  for (int64_t n = 0; n < options.tokens; ++n) {
    if (options.stop.stop_requested()) break;
    // The model's vocabulary may be larger than the tokenizer's. What is beyond that is no text.
    const at::Tensor all_logits = decoder.read(unread);
    const at::Tensor logits = all_logits.narrow(0, 0, std::min(all_logits.size(0), model.tokenizer->vocabulary_size()));
    RandomStream stream(options.seed, StreamPurpose::Sampling, static_cast<uint64_t>(n));
    const int64_t token = sample(logits, options.sampling, stream);
    if (token == model.tokenizer->end_of_document()) break;
    unread = {static_cast<int32_t>(token)};
    fresh.push_back(static_cast<int32_t>(token));
    const std::string text = model.tokenizer->decode(fresh);
    const size_t certain = whole_characters(text);
    if (certain > written) write(std::string_view(text).substr(written, certain - written));
    written = std::max(written, certain);
    if (fresh.size() >= kMost && written == text.size()) {  // so that a token costs the same, however long the text is
      fresh = last_of(fresh, kBefore);
      written = model.tokenizer->decode(fresh).size();
    }
  }
}

}  // namespace gyre
