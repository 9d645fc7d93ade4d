// Constants of Philox4x32-10 (Salmon et al., SC 2011), for core/random.h and for device code that implements it again.
// CUDA's compiler reads this too, as C++17.
#pragma once

#include <array>
#include <cstdint>

namespace gyre {

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::array<uint32_t, 2> kPhiloxFactors = {0xD2511F53u, 0xCD9E8D57u};
inline constexpr std::array<uint32_t, 2> kPhiloxKeySteps = {0x9E3779B9u, 0xBB67AE85u};

}  // namespace gyre
