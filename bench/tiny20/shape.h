// The model and run that are measured.
#pragma once

#include <cstdint>

namespace gyre::bench {

struct Shape {
  int64_t layers = 8, width = 384, heads = 6, context = 256, vocabulary = 8192, microbatch = 4;
  int workers = 2;                                       // and stages
  int64_t rows() const { return microbatch * context; }  // tokens of a microbatch
};

}  // namespace gyre::bench
