#include "gyre/model/gpt.h"

#include "gyre/kernels/activation.h"
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
  BlockConfig block;
  block.layers = static_cast<int>(settings.layers);
  block.width = settings.width;
  block.heads = {settings.heads, settings.heads};
  block.context = settings.context;
  block.mlp_width = mlp_width(settings);
  block.activation = activation_by_name(settings.activation);
  block.bias = settings.bias;
  block.dropout = settings.dropout;
  block.epsilon = kNormEpsilon;
  for (int number = 0; number < block.layers; ++number) layers.push_back(make_transformer_block(block, number));
  LanguageModelHeadConfig head;
  head.norm = {NormKind::LayerNorm, settings.width, settings.bias, kNormEpsilon};
  head.vocabulary = settings.vocabulary;
  layers.push_back(make_language_model_head(head));
  return layers;
}

}  // namespace gyre
