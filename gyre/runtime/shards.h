// Shards of a stage: its parameters cut into runs of whole matrices, one for each of its owners (ZeRO stage 1). What is
// sent of a shard is that part of the stage's flat buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gyre/tensors/parameter.h"

namespace gyre {

struct Shard {
  size_t begin = 0, end = 0;  // parameters of the stage
  int64_t offset = 0;         // elements of its flat buffer before this
  int64_t elements = 0;       // padding included

  std::span<const ParameterSpec> of(std::span<const ParameterSpec> stage) const {
    return stage.subspan(begin, end - begin);
  }
};

// `count` shards in the order of the parameters, of which the largest is as small as it can be. Some are empty where
// there are more than parameters.
std::vector<Shard> cut_into_shards(std::span<const ParameterSpec> stage, int count);

}  // namespace gyre
