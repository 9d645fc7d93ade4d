// oneDNN's products of bf16 matrices, made where they run and kept. Where gyre is built without oneDNN it says that it
// cannot.
#pragma once

#include <string>

#include "gyre/kernels/bf16/product.h"

namespace gyre::onednn {

// Whether it is there and the CPU has instructions for bf16.
bool cpu_serves();
// Whether ONEDNN_MAX_CPU_ISA, which says what oneDNN may use, leaves the tiles of AMX.
bool allows_tiles();
// "oneDNN 2.6.3 (AVX-512)", or "libtorch" and why.
std::string description();

// As bf16::run. The thread keeps what it has made, and some memory that primitives work in. How work is cut depends on
// the number of threads, and so do bits.
void run(const bf16::Product& product, const void* first, const void* second, void* result, const void* bias);

}  // namespace gyre::onednn
