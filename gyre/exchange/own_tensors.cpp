#include "gyre/exchange/own_tensors.h"

#include "gyre/build/model_maker.h"
#include "gyre/model/stage.h"

namespace gyre {

std::vector<OwnTensor> own_tensors(const ModelSettings& settings) {
  const Stage model(model_makers().at(settings.kind).layers(settings), 0);
  std::vector<OwnTensor> own;
  for (const ParameterSpec& spec : model.parameters()) own.push_back({spec.name, spec.shape, spec.row_blocks});
  return own;
}

}  // namespace gyre
