// Which tensors of theirs a model of ours is, one by one: a family's table, written out for every block.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gyre/exchange/hugging_face/family.h"

namespace gyre {

// A parameter of ours.
struct OwnTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int64_t> row_blocks = {};  // see ParameterSpec
};

// One tensor of theirs.
struct Counterpart {
  std::string theirs;
  std::vector<int64_t> shape;       // of theirs
  std::string ours;                 // empty: theirs is zeros
  int64_t first_row = 0, rows = 0;  // of ours
  bool transposed = false;
  TensorPair::Use use = TensorPair::Use::Own;
};

// Sorted by their names. Every row of ours is in one counterpart that is its own. std::logic_error where a table of
// ours lacks one.
std::vector<Counterpart> correspondence(const Family& family, int64_t blocks, const std::vector<OwnTensor>& own);

// Their names as files may have them: the one of these that is meant, or the name as it is.
std::string canonical_name(const Family& family, const std::set<std::string>& known, const std::string& name);
// Whether it is no weight, but something that their program keeps beside.
bool is_buffer(const Family& family, const std::string& name);

}  // namespace gyre
