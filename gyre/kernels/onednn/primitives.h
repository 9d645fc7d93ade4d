// oneDNN's products of bf16 matrices, made where they run and kept: asked for by shape, given pointers.
#pragma once

#include <compare>
#include <cstdint>

namespace gyre::onednn {

// Whether the CPU has instructions for bf16. ONEDNN_MAX_CPU_ISA can take them away.
bool cpu_has_bf16();
bool cpu_has_amx();

// What is multiplied, of matrices that lie row by row without gaps:
//   x (rows, in), w (out, in), y (rows, out), all bf16; g (out, in) fp32; bias (out) bf16
enum class Kind {
  Forward,         // y = x w^T, first x, then w
  BackwardInput,   // x = y w, first y, then w
  BackwardWeight,  // g = y^T x, first x, then y: for matrices of many rows
  Outer,           // the same, first y, then x: for those of few
  AddedOuter,      // g += y^T x
};

// What a primitive is made for. Threads decide how it cuts its work, so its bits.
struct Product {
  Kind kind;
  int64_t rows, in, out;
  bool bias;
  int threads;
  auto operator<=>(const Product&) const = default;
};

// The thread keeps what it has made, and some memory that primitives work in.
void run(const Product& product, const void* first, const void* second, void* result, const void* bias = nullptr);

}  // namespace gyre::onednn
