#include "gyre/model/gpt.h"

#include "gyre/model/gpt_embedding.h"
#include "gyre/model/language_model_head.h"
#include "gyre/model/transformer_block.h"

namespace gyre {
namespace {

constexpr double kNormEpsilon = 1e-5;

}  // namespace

Layers build_gpt(const ModelSettings& settings) {
  check_model(settings);
  Layers layers;
  layers.push_back(make_gpt_embedding(settings));
  BlockConfig block = block_config(settings);
  block.epsilon = kNormEpsilon;
  for (int number = 0; number < settings.layers; ++number) layers.push_back(make_transformer_block(block, number));
  LanguageModelHeadConfig head;
  head.norm = {NormKind::LayerNorm, settings.width, settings.bias, kNormEpsilon};
  head.vocabulary = settings.vocabulary;
  layers.push_back(make_language_model_head(head));
  return layers;
}

}  // namespace gyre
