// Products of bf16 matrices on the CPU: asked for by shape, given pointers. They are made with the tiles of AMX where
// the CPU has them (amx/), else by oneDNN where it is there and the CPU has other instructions for bf16 (onednn/).
#pragma once

#include <cstdint>
#include <string>

namespace gyre::bf16 {

// What is multiplied, of matrices that lie row by row without gaps:
//   x (rows, in), w (out, in), y (rows, out), all bf16; g (out, in) fp32; bias (out) bf16
enum class Kind {
  Forward,         // y = x w^T, first x, then w
  BackwardInput,   // x = y w, first y, then w
  WideInput,       // the same with x in fp32
  AddedInput,      // x += y w, x in fp32
  BackwardWeight,  // g = y^T x, first y, then x: for matrices of many rows
  AddedWeight,     // g += y^T x
  Outer,           // these two for matrices of few rows
  AddedOuter,
};

struct Product {
  Kind kind;
  int64_t rows, in, out;
};

// Whether anything here can multiply on this CPU. ONEDNN_MAX_CPU_ISA takes instructions away, also those for tiles.
bool cpu_serves();
// "gyre (AMX)", "oneDNN 2.6.3 (AVX-512)", or "libtorch" and why.
std::string description();

// A factor of a product that is asked for by itself: rows `stride` elements apart, of it or of its transpose.
struct Factor {
  const uint16_t* data;  // bf16
  int64_t stride;
  bool transposed;
};
// Of c (m, n) = a (m, k) b (k, n).
struct Sizes {
  int64_t m, n, k;
};
// c = a b, c row by row, in fp32 if `wide`, else in bf16.
void multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool wide, void* c);

// Whether what is added to a gradient of weights is added where that lies, and not made by itself before.
bool adds_in_place();

// On all of the thread's threads (at::get_num_threads), of which each keeps some memory to work in.
// bias: for Forward, or null.
void run(const Product& product, const void* first, const void* second, void* result, const void* bias = nullptr);

}  // namespace gyre::bf16
