// The options that belong to one kind of schedule: the tables [pipeline.amdp] and so on, and flags of the same names.
#pragma once

#include <cstdint>

#include "gyre/core/options.h"
#include "gyre/schedule/limits.h"

namespace gyre {

struct InterleavedSettings {
  int64_t chunks = 2;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("chunks", self.chunks, between(1, kMostStages), "stages on each worker");
  }
  bool operator==(const InterleavedSettings&) const = default;
};

struct AmdpSettings {
  int64_t pipelines = 0;
  int64_t intake = 2;
  int64_t preload = -1;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("pipelines", self.pipelines, between(0, kMostStages),
          "number of pipelines; 0: as many as suit the number of stages. Fewer are slower and take less memory");
    visit("intake", self.intake, between(1, kMostStages),
          "microbatches that each pipeline takes in together; those of all pipelines are a block. At most so many are "
          "in a pipeline at the same time");
    visit(
        "preload", self.preload, between(-1, kMostWindow),
        "forwards of the next block that precede the last backward of this one; -1: the number that suits tb_over_tf");
  }
  bool operator==(const AmdpSettings&) const = default;
};

}  // namespace gyre
