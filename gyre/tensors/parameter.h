// The specification of a layer's weights, and named tensors as checkpoints hold them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gyre {

// The initial value of a weight: zeros, ones, normal with the given deviation (drawn from the stream keyed by its full
// name), or a given value.
struct Initialization {
  enum class Kind { Zeros, Ones, Normal, Value } kind = Kind::Zeros;
  float deviation = 0;
  at::Tensor value = {};
};

struct ParameterSpec {
  std::string name;            // within the layer; full names are the layer's prefix + "." + name
  std::vector<int64_t> shape;  // matrices are (out, in)
  Initialization initialization;
  bool decay = false;   // weight decay applies (matrices and embeddings; not norms and biases)
  bool rotate = false;  // basis rotation applies: matrices of attention and MLP. Embeddings, norms and head use AdamW
  // For a fused matrix, which stacks several by rows: the number of rows of each (queries, keys and values). Empty: a
  // single matrix.
  std::vector<int64_t> row_blocks = {};
  // For a tied weight: full name of the earlier layer's weight that it is. Empty: the weight is the layer's own.
  std::string tied_to = {};
};

// Sorted by name, so that equal contents are written as equal bytes.
using NamedTensors = std::map<std::string, at::Tensor>;

}  // namespace gyre
