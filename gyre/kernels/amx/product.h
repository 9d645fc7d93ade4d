// Products of bf16 matrices by the tile instructions of CPUs with AMX. Each element of a result is summed in one order,
// whatever the number of threads.
#pragma once

#include <cstdint>

#include "gyre/kernels/bf16/product.h"

namespace gyre::amx {

// Whether the CPU has them and the operating system lets this process use them.
bool cpu_has_tiles();

using bf16::Factor;
using bf16::Sizes;

// c = a b, and `bias` (n) to every row where it is not null, rounded to bf16 once.
void multiply(const Sizes& sizes, const Factor& a, const Factor& b, const uint16_t* bias, uint16_t* c);
// c = a b, or c += a b where it `adds`, in fp32.
void multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool adds, float* c);

}  // namespace gyre::amx
