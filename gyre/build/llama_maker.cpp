// How a Llama is built. It learns from plain text.
#include "gyre/build/model_maker.h"
#include "gyre/model/llama.h"

namespace gyre {
namespace {

Layers llama_layers(const ModelSettings& model) {
  return build_llama({model, model.own.of_kind(model.kind).get<LlamaSettings>()});
}

}  // namespace

ModelMaker llama_maker() {
  return {"llama", llama_layers, nullptr};
}

}  // namespace gyre
