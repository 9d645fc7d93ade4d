// GEMMs of bf16 matrices with the tile instructions of CPUs with AMX. The order in which an element of the result is
// summed does not depend on the number of threads.
#pragma once

#include <cstdint>

#include "gyre/kernels/bf16/product.h"

namespace gyre::amx {

// Whether the CPU has AMX tiles and the operating system lets this process use them.
bool cpu_has_tiles();

using bf16::Factor;
using bf16::Sizes;

// c = a b, plus `bias` (n) in every row if it is not null. Sums are fp32, rounded to bf16 once.
void multiply(const Sizes& sizes, const Factor& a, const Factor& b, const uint16_t* bias, uint16_t* c);
// c = a b, or c += a b if `adds`, in fp32.
void multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool adds, float* c);

}  // namespace gyre::amx
