// Built without oneDNN: nothing can be done here.
#include "gyre/kernels/onednn/attention.h"

namespace gyre::onednn {

bool attention(const HeadTensors&, const AttentionHeads&, bool, at::Tensor&) {
  return false;
}

bool attention_backward(const at::Tensor&, const HeadTensors&, const AttentionHeads&, bool, HeadTensors&) {
  return false;
}

}  // namespace gyre::onednn
