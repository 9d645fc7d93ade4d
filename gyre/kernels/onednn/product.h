// Matrix products by oneDNN, of bf16 and of fp32. Each thread creates the primitives that it runs, and caches them.
// Without oneDNN in the build, cpu_serves() and serves_fp32() are false.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/kernels/bf16/product.h"

namespace gyre::onednn {

// Whether gyre is built with oneDNN and the CPU has instructions for bf16 that oneDNN may use.
bool cpu_serves();
// Whether gyre is built with oneDNN, and it may use AVX-512. Without AVX-512 its products of fp32 are as fast as
// OpenBLAS's.
bool serves_fp32();
// Whether ONEDNN_MAX_CPU_ISA, which limits the instructions that oneDNN may use, allows AMX tiles.
bool allows_tiles();
// Whether ONEDNN_MAX_CPU_ISA forbids oneDNN the AVX-512, or the instructions for bf16, that the CPU has.
bool is_limited();
// Of products of bf16: "oneDNN 2.6.3 (AVX-512)", "in fp32" or "libtorch" with the reason.
std::string description();
// Of products of fp32: the same, or "libtorch".
std::string fp32_description();

// The same products as in amx/product.h. Each thread caches its primitives and keeps the scratch memory of the largest.
// How work is divided, and so the result's bits, depends on the number of threads.
// c = a b, plus `bias` (n) in every row if it is not null, rounded to bf16 once.
void multiply(const bf16::Sizes& sizes, const bf16::Factor& a, const bf16::Factor& b, const uint16_t* bias,
              uint16_t* c);
// c = a b, or c += a b if `adds`, in fp32.
void multiply(const bf16::Sizes& sizes, const bf16::Factor& a, const bf16::Factor& b, bool adds, float* c);
// The same of fp32: c = a b, plus `bias` (n) in every row if it is not null, or c += a b if `adds`.
void multiply(const ProductSizes& sizes, const FactorOf<float>& a, const FactorOf<float>& b, const float* bias,
              bool adds, float* c);
// Of bf16 again, for c = a^T b with contiguous row-major a (k, m) and b (k, n): faster if k is large.
void multiply_long(const bf16::Sizes& sizes, const uint16_t* a, const uint16_t* b, bool adds, float* c);

}  // namespace gyre::onednn
