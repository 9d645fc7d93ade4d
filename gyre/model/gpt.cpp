#include "gyre/model/gpt.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/kernels/activation.h"
#include "gyre/model/gpt_embedding.h"
#include "gyre/model/language_model_head.h"
#include "gyre/model/transformer_block.h"

namespace gyre {
namespace {

constexpr double kNormEpsilon = 1e-5;

void check(const GptConfig& config) {
  const auto at_least_one = [](const char* key, int64_t value) {
    if (value < 1) throw InputError(fmt::format("[model] {} is {}; give at least 1", key, value));
  };
  at_least_one("layers", config.layers);
  at_least_one("width", config.width);
  at_least_one("heads", config.heads);
  at_least_one("context", config.context);
  at_least_one("vocabulary", config.vocabulary);
  if (config.width % config.heads != 0) {
    throw InputError(fmt::format("[model] heads is {}, which does not divide width {}; choose heads that do",
                                 config.heads, config.width));
  }
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    throw InputError(fmt::format("[model] dropout is {}; give 0 or more and less than 1", config.dropout));
  }
}

}  // namespace

Layers build_gpt(const GptConfig& config) {
  check(config);
  GptConfig resolved = config;
  if (resolved.mlp_width == 0) resolved.mlp_width = 4 * resolved.width;
  Layers layers;
  layers.push_back(make_gpt_embedding(resolved));
  BlockConfig block;
  block.layers = resolved.layers;
  block.width = resolved.width;
  block.heads = {resolved.heads, resolved.heads};
  block.context = resolved.context;
  block.mlp_width = resolved.mlp_width;
  block.activation = activation_by_name(resolved.activation);
  block.bias = resolved.bias;
  block.dropout = resolved.dropout;
  block.epsilon = kNormEpsilon;
  for (int number = 0; number < resolved.layers; ++number) layers.push_back(make_transformer_block(block, number));
  LanguageModelHeadConfig head;
  head.norm = {NormKind::LayerNorm, resolved.width, resolved.bias, kNormEpsilon};
  head.vocabulary = resolved.vocabulary;
  layers.push_back(make_language_model_head(head));
  return layers;
}

}  // namespace gyre
