// Shards of a stage (ZeRO stage 1): its parameters, in order, cut into runs of whole matrices, one for each owner. A
// message about a shard holds its part of the stage's flat buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gyre/tensors/parameter.h"

namespace gyre {

struct Shard {
  size_t begin = 0, end = 0;  // range of the stage's parameters
  int64_t offset = 0;         // elements of the stage's flat buffer before this shard
  int64_t elements = 0;       // padding included

  std::span<const ParameterSpec> of(std::span<const ParameterSpec> stage) const {
    return stage.subspan(begin, end - begin);
  }
};

// Cuts into `count` shards, in parameter order, so that the largest is as small as possible. Some may be empty, as they
// must be if there are fewer parameters than shards.
std::vector<Shard> cut_into_shards(std::span<const ParameterSpec> stage, int count);

}  // namespace gyre
