// What a number is drawn with that decides whether a value is rounded up or down to bf16: constants that C++ and CUDA's
// compiler share. A draw is a well mixed number of the bits of an element's gradient and of the update's number, by
// shifts and products that lose no bit (Wellons' lowbias32), so that its halves are as good as independent.
#pragma once

#include <cstdint>

namespace gyre {

constexpr uint32_t kDrawUpdateStep = 0x9E3779B9u, kDrawMix1 = 0x7FEB352Du, kDrawMix2 = 0x846CA68Bu;

}  // namespace gyre
