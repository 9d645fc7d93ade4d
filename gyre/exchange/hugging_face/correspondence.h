// Which tensor of a Hugging Face model corresponds to which parameter of a gyre model: a family's table, expanded for
// every block.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gyre/exchange/hugging_face/family.h"

namespace gyre {

// A parameter of a gyre model.
struct OwnTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int64_t> row_blocks = {};  // see ParameterSpec
};

// One tensor of a Hugging Face model.
struct Counterpart {
  std::string theirs;
  std::vector<int64_t> shape;       // as Hugging Face has it
  std::string ours;                 // the parameter; empty: the tensor is zeros
  int64_t first_row = 0, rows = 0;  // of the parameter
  bool transposed = false;
  TensorPair::Use use = TensorPair::Use::Own;
};

// Sorted by `theirs`. Every row of every parameter is in one counterpart of Use::Own; throws std::logic_error if the
// family's table lacks one.
std::vector<Counterpart> correspondence(const Family& family, int64_t blocks, const std::vector<OwnTensor>& own);

// Files may have tensors under older names, or without the family's prefix. Returns the one of `known` that is meant,
// or `name` as it is.
std::string canonical_name(const Family& family, const std::set<std::string>& known, const std::string& name);
// Whether the tensor is no weight, but a buffer of a transformers module.
bool is_buffer(const Family& family, const std::string& name);

}  // namespace gyre
