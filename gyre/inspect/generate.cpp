// The whole model in one stage, forward over the last `context` tokens, one new token at a time.
#include "gyre/inspect/generate.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gyre/build/build.h"
#include "gyre/core/error.h"
#include "gyre/core/random.h"
#include "gyre/core/text.h"
#include "gyre/data/utf8.h"
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
  if (!(options.temperature >= 0))
    throw InputError(fmt::format("--temperature is {}; give 0 or more", options.temperature));
  if (options.top_k < 0) throw InputError(fmt::format("--top-k is {}; give 0 (all) or more", options.top_k));
}

std::vector<at::Tensor> compute_weights(const TrainedModel& model, const Stage& stage) {
  const at::ScalarType compute = compute_type(model.config);
  std::vector<at::Tensor> weights;
  for (const ParameterSpec& spec : stage.parameters())
    weights.push_back(model.checkpoint.weights.at(spec.name).to(compute));
  return weights;
}

// Draws from softmax(logits / temperature) over the top_k likeliest. Ties go to the smaller token, so that the order is
// fixed. logits: (vocabulary) fp32.
int64_t sample(const at::Tensor& logits, const GenerateOptions& options, RandomStream& stream) {
  const float* scores = logits.data_ptr<float>();
  std::vector<int64_t> order(static_cast<size_t>(logits.size(0)));
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int64_t a, int64_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; };
  const size_t kept = options.temperature == 0 ? 1
                      : options.top_k == 0     ? order.size()
                                               : std::min(order.size(), static_cast<size_t>(options.top_k));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), likelier);
  if (kept == 1) return order[0];
  std::vector<double> cumulative(kept);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    sum += std::exp((double{scores[order[i]]} - double{scores[order[0]]}) / options.temperature);
    cumulative[i] = sum;
  }
  const double draw = stream.uniform() * sum;
  const auto chosen = std::upper_bound(cumulative.begin(), cumulative.end(), draw) - cumulative.begin();
  return order[std::min(static_cast<size_t>(chosen), kept - 1)];
}

}  // namespace

void generate(const TrainedModel& model, const GenerateOptions& options,
              const std::function<void(std::string_view)>& write) {
  check(model.config.model);
  check(options);
  const c10::NoGradGuard no_grad;
  const Stage stage(build_layers(model.config), 0);
  const std::vector<at::Tensor> weights = compute_weights(model, stage);

  std::vector<int32_t> tokens;
  model.tokenizer->encode(options.prompt, tokens);
  std::vector<int32_t> fresh;
  size_t written = 0;
  for (int64_t n = 0; n < options.tokens; ++n) {
    if (options.stop.stop_requested()) break;
    const size_t length = std::min(tokens.size(), static_cast<size_t>(model.config.model.context));
    const std::vector<int64_t> window(tokens.end() - static_cast<std::ptrdiff_t>(length), tokens.end());
    const at::Tensor input = at::tensor(window, at::kLong).unsqueeze(0);  // (1, length)
    LayerContext context;
    context.training = false;
    StageSaved saved;
    const at::Tensor logits = stage.forward(weights, input, context, saved);  // (1, length, vocabulary)
    RandomStream stream(options.seed, StreamPurpose::Sampling, static_cast<uint64_t>(n));
    const int64_t token =
        sample(logits[0][static_cast<int64_t>(length) - 1].to(at::kFloat).contiguous(), options, stream);
    if (token == model.tokenizer->end_of_document()) break;
    tokens.push_back(static_cast<int32_t>(token));
    fresh.push_back(static_cast<int32_t>(token));
    const std::string text = model.tokenizer->decode(fresh);
    const size_t certain = whole_characters(text);
    if (certain > written) write(std::string_view(text).substr(written, certain - written));
    written = std::max(written, certain);
  }
}

}  // namespace gyre
