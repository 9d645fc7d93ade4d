#include "gyre/model/gpt.h"

#include "gyre/model/gpt_embedding.h"
#include "gyre/model/language_model_head.h"
#include "gyre/model/transformer_block.h"

namespace gyre {

Layers build_gpt(const ModelSettings& settings) {
  check_model(settings);
  Layers layers;
  layers.push_back(make_gpt_embedding(settings));
  const BlockConfig block = block_config(settings);
  for (int number = 0; number < settings.layers; ++number) add_transformer_block(block, number, layers);
  LanguageModelHeadConfig head;
  head.norm = {.width = settings.width, .bias = settings.bias};
  head.vocabulary = settings.vocabulary;
  head.tied = settings.tie;
  layers.push_back(make_language_model_head(head));
  return layers;
}

}  // namespace gyre
