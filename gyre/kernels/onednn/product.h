// oneDNN's products of bf16 matrices, made where they run and kept. Where gyre is built without oneDNN it says that it
// cannot.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/kernels/bf16/product.h"

namespace gyre::onednn {

// Whether it is there and the CPU has instructions for bf16.
bool cpu_serves();
// Whether ONEDNN_MAX_CPU_ISA, which says what oneDNN may use, leaves the tiles of AMX.
bool allows_tiles();
// "oneDNN 2.6.3 (AVX-512)", or "libtorch" and why.
std::string description();

// Products as the tiles make them (amx/product.h). The thread keeps what it has made, and some memory that primitives
// work in. How work is cut depends on the number of threads, and so do bits.
// c = a b, and `bias` (n) to every row where it is not null, rounded to bf16 once.
void multiply(const bf16::Sizes& sizes, const bf16::Factor& a, const bf16::Factor& b, const uint16_t* bias,
              uint16_t* c);
// c = a b, or c += a b where it `adds`, in fp32.
void multiply(const bf16::Sizes& sizes, const bf16::Factor& a, const bf16::Factor& b, bool adds, float* c);
// The same of c = a^T b, both row by row without gaps, a (k, m), b (k, n): faster where k, their rows, are many.
void multiply_long(const bf16::Sizes& sizes, const uint16_t* a, const uint16_t* b, bool adds, float* c);

}  // namespace gyre::onednn
