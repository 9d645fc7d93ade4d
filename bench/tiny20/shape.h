// The shape of the model and run that tiny20 measures.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gyre/model/llama.h"

namespace gyre::bench {

struct Shape {
  int64_t layers = 8, width = 384, heads = 6, context = 256, vocabulary = 8192, microbatch = 4;
  int workers = 2;                                       // also the number of stages
  bool llama = false;                                    // instead of a GPT
  bool fp32 = false;                                     // compute in fp32 instead of bf16
  bool bf16_moments = false;                             // [optimizer] moments
  bool recompute = false;                                // [pipeline] recompute
  int64_t refresh_lag = 0;                               // [optimizer.basis-rotation] refresh_lag
  std::string device = "cpu";                            // of all workers
  int64_t rows() const { return microbatch * context; }  // tokens of a microbatch

  // Calls visit(flag, number, meaning) for each number.
  template <typename SomeShape, typename Visit>
  static void each_number(SomeShape& shape, Visit&& visit) {
    visit("--layers", shape.layers, "");
    visit("--width", shape.width, "");
    visit("--heads", shape.heads, "");
    visit("--context", shape.context, "");
    visit("--vocabulary", shape.vocabulary, "");
    visit("--microbatch", shape.microbatch, "Sequences");
    visit("--stages", shape.workers, "");
    visit("--refresh-lag", shape.refresh_lag, "As [optimizer.basis-rotation] refresh_lag says");
  }

  ModelSettings model() const {
    ModelSettings model;
    model.layers = layers;
    model.width = width;
    model.heads = heads;
    model.context = context;
    model.vocabulary = vocabulary;
    if (!llama) return model;
    model.kind = "llama";
    model.activation = "silu";
    model.bias = false;
    return model;
  }
  // Floating-point operations of a token's products, forward and backward; attention's causal half alone.
  double operations() const {
    double weights = static_cast<double>(width) * static_cast<double>(vocabulary);  // the head's
    for (const auto& [in, out] : matrices()) weights += static_cast<double>(layers * in) * static_cast<double>(out);
    const double attention = static_cast<double>(layers * context) * static_cast<double>(width);
    return 6 * (weights + attention);
  }
  // (in, out) of a block's matrices.
  std::vector<std::pair<int64_t, int64_t>> matrices() const {
    const int64_t hidden = llama ? llama_mlp_width(model()) : 4 * width;
    return {{width, 3 * width}, {width, width}, {width, llama ? 2 * hidden : hidden}, {hidden, width}};
  }
};

}  // namespace gyre::bench
