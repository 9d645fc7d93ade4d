// What a layer says of each of its weights, and named tensors as checkpoints hold them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gyre {

// How a weight starts: zeros, ones, normal with the given deviation (drawn from the stream keyed by its full name), or
// a value of its own.
struct Initialization {
  enum class Kind { Zeros, Ones, Normal, Value } kind = Kind::Zeros;
  float deviation = 0;
  at::Tensor value = {};
};

struct ParameterSpec {
  std::string name;            // within the layer; full names are layer name + "." + name
  std::vector<int64_t> shape;  // matrices are (out, in)
  Initialization initialization;
  bool decay = false;   // weight decay applies (matrices and embeddings; not norms and biases)
  bool rotate = false;  // basis rotation applies: matrices of attention and MLP. Embeddings, norms and head have AdamW
  // A fused matrix is several that are stacked by rows: how many rows each has (queries, keys, values). Empty: it is
  // one.
  std::vector<int64_t> row_blocks = {};
  // Full name of the weight of an earlier layer that this one is (tied embeddings); empty: it is one of its own.
  std::string tied_to = {};
};

// Sorted by name, so that equal contents are written as equal bytes.
using NamedTensors = std::map<std::string, at::Tensor>;

}  // namespace gyre
