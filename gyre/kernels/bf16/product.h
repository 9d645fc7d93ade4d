// GEMMs of bf16 matrices on the CPU, on raw pointers. Computed with AMX tiles if the CPU has them (amx/), else with
// oneDNN if it is built in and the CPU has other instructions for bf16 (onednn/).
#pragma once

#include <cstdint>
#include <string>

#include "gyre/kernels/factor.h"

namespace gyre::bf16 {

// The products of a linear map, of contiguous row-major matrices:
//   x (rows, in), w (out, in), y (rows, out), all bf16; g (out, in) fp32; bias (out) bf16
enum class Kind {
  Forward,         // y = x w^T (+ bias); factors x, w
  BackwardInput,   // x = y w; factors y, w (dgrad)
  WideInput,       // the same with x in fp32
  AddedInput,      // x += y w, x in fp32
  BackwardWeight,  // g = y^T x; factors y, x (wgrad); for many rows
  AddedWeight,     // g += y^T x
  Outer,           // as BackwardWeight and AddedWeight, for few rows
  AddedOuter,
};

struct Product {
  Kind kind;
  int64_t rows, in, out;
};

// Whether any implementation can run on this CPU. ONEDNN_MAX_CPU_ISA can disable instructions, AMX tiles included.
bool cpu_serves();
// Whether it is oneDNN, which packs a factor anew for every product.
bool is_by_onednn();
// "gyre (AMX)", "oneDNN 2.6.3 (AVX-512)", "in fp32" or "libtorch" with the reason.
std::string description();

using Factor = FactorOf<uint16_t>;
using Sizes = ProductSizes;
// c = a b. c is contiguous and row-major, in fp32 if `wide`, else in bf16.
void multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool wide, void* c);

// Whether AddedWeight adds directly to g. If not, the product is first computed into a temporary matrix.
bool adds_in_place();

// Computes one product on at::get_num_threads() threads, each of which keeps some working memory between calls.
// bias: only with Forward; may be null.
void run(const Product& product, const void* first, const void* second, void* result, const void* bias = nullptr);

}  // namespace gyre::bf16
