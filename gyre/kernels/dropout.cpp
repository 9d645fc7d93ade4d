#include "gyre/kernels/dropout.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "gyre/kernels/cpu_dispatch.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/cuda/kernels.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/tensors/profile_scope.h"
#include "gyre/tensors/wide_type.h"

namespace gyre {
namespace {

constexpr int64_t kBlocks = cpu::kLanes;  // of random words that are computed side by side
constexpr int64_t kWords = 4 * kBlocks;   // in them

// The masks of `count` elements, a multiple of kWords, from the words of block `first` on. A word below the threshold
// drops its element. The bytes of a block's four masks are computed as one 32-bit word, the first the lowest: GCC does
// not vectorise a loop that stores them one by one.
GYRE_CPU_KERNEL void fill_mask(const RandomStream& stream, uint32_t first, uint32_t threshold, bool* mask,
                               int64_t count) {
  const std::array<uint32_t, 4> counter = stream.counter(first);
  const std::array<uint32_t, 2> key = stream.key();
  for (int64_t begin = 0; begin < count; begin += kWords) {
    std::array<uint32_t, kBlocks> masks;
    for (uint32_t lane = 0; lane < kBlocks; ++lane) {
      const uint32_t block = counter[0] + static_cast<uint32_t>(begin / 4) + lane;
      const auto words = philox4x32_10({block, counter[1], counter[2], counter[3]}, key);
      const auto kept = [&](int i) { return static_cast<uint32_t>(words[i] >= threshold) << (8 * i); };
      masks[lane] = kept(0) | kept(1) | kept(2) | kept(3);
    }
    std::memcpy(mask + begin, masks.data(), sizeof masks);
  }
}

at::Tensor cpu_mask(const at::Tensor& x, double probability, const RandomStream& stream) {
  at::Tensor mask = at::empty(x.sizes(), x.options().dtype(at::kBool));
  const uint32_t threshold = dropout_threshold(probability);
  auto* const out = mask.data_ptr<bool>();
  const int64_t rest = mask.numel() % kWords, whole = mask.numel() - rest;
  cpu::for_elements(whole, [&](int64_t begin, int64_t end) {
    fill_mask(stream, static_cast<uint32_t>(begin / 4), threshold, out + begin, end - begin);
  });
  if (rest > 0) {
    std::array<bool, kWords> last;
    fill_mask(stream, static_cast<uint32_t>(whole / 4), threshold, last.data(), kWords);
    std::copy_n(last.begin(), rest, out + whole);
  }
  return mask;
}

double kept_factor(double probability) {
  return 1.0 / (1.0 - probability);
}

// The mask's bytes, each 0 or 1. GCC does not vectorise a loop that reads them as bool.
template <typename T>
GYRE_INLINE void apply_to_each(const T* x, const unsigned char* mask, float factor, T* result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    cpu::store(result + i, cpu::load(x + i) * static_cast<float>(mask[i]) * factor);
  }
}
template <typename T>
GYRE_INLINE void apply_loop(const T* x, const unsigned char* mask, float factor, T* result, int64_t count) {
  // In place the compiler sees one pointer. Of two it would find at run time that they overlap, and not vectorise.
  if (x == result) return apply_to_each(result, mask, factor, result, count);
  apply_to_each(x, mask, factor, result, count);
}
GYRE_CPU_KERNEL void apply_kernel(const float* x, const unsigned char* mask, float factor, float* result,
                                  int64_t count) {
  apply_loop(x, mask, factor, result, count);
}
GYRE_CPU_KERNEL void apply_kernel(const c10::BFloat16* x, const unsigned char* mask, float factor,
                                  c10::BFloat16* result, int64_t count) {
  apply_loop(x, mask, factor, result, count);
}

// Masks the low 32 bits: unsigned 32-bit words are held in int64 tensors.
constexpr int64_t kWord = 0xFFFFFFFF;

struct Product {
  at::Tensor high, low;  // words
};
Product multiply(const at::Tensor& word, int64_t factor) {
  const at::Tensor product = word * factor;  // the bits of the unsigned product, modulo 2^64
  return {product.bitwise_right_shift(32).bitwise_and_(kWord), product.bitwise_and(kWord)};
}

}  // namespace

at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream) {
  const ProfileScope scope("gyre::dropout");
  if (x.is_cpu()) return cpu_mask(x, probability, stream);
  at::Tensor mask;
  return cuda::dropout_mask(x, probability, stream, mask) ? mask : portable::dropout_mask(x, probability, stream);
}

void apply_dropout(const at::Tensor& x, const at::Tensor& mask, double probability, at::Tensor& result) {
  const ProfileScope scope("gyre::dropout");
  const auto portable = [&] { portable::apply_dropout(x, mask, probability, result); };
  if (!x.is_contiguous() || !mask.is_contiguous() || !result.is_contiguous()) return portable();
  cpu::dispatch(
      x,
      [&]<typename T>() {
        const T* from = x.data_ptr<T>();
        const auto* kept = reinterpret_cast<const unsigned char*>(mask.data_ptr<bool>());
        T* const to = result.data_ptr<T>();
        cpu::for_elements(x.numel(), [&](int64_t begin, int64_t end) {
          apply_kernel(from + begin, kept + begin, static_cast<float>(kept_factor(probability)), to + begin,
                       end - begin);
        });
      },
      portable);
}

uint32_t dropout_threshold(double probability) {
  return static_cast<uint32_t>(probability * 0x1.0p32);
}

namespace portable {

// philox4x32_10 for all blocks at once.
at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream) {
  const auto options = x.options().dtype(at::kLong);
  const int64_t blocks = (x.numel() + 3) / 4;
  const auto counter = stream.counter(0);
  auto key = stream.key();
  at::Tensor c0 = at::arange(blocks, options);
  at::Tensor c1 = at::full({blocks}, int64_t{counter[1]}, options);
  at::Tensor c2 = at::full({blocks}, int64_t{counter[2]}, options);
  at::Tensor c3 = at::full({blocks}, int64_t{counter[3]}, options);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Product p0 = multiply(c0, kPhiloxFactors[0]), p1 = multiply(c2, kPhiloxFactors[1]);
    c0 = p1.high.bitwise_xor(c1).bitwise_xor(int64_t{key[0]});
    c2 = p0.high.bitwise_xor(c3).bitwise_xor(int64_t{key[1]});
    c1 = p1.low;
    c3 = p0.low;
    key[0] += kPhiloxKeySteps[0];
    key[1] += kPhiloxKeySteps[1];
  }
  const at::Tensor words = at::stack({c0, c1, c2, c3}, -1).reshape({-1}).narrow(0, 0, x.numel());
  return words.ge(int64_t{dropout_threshold(probability)}).view(x.sizes());
}

// A product with an fp32 tensor is made in fp32; of bf16 and a number ATen would round the number first.
void apply_dropout(const at::Tensor& x, const at::Tensor& mask, double probability, at::Tensor& result) {
  at::mul_out(result, x, mask.to(wide_type(x)).mul_(kept_factor(probability)));
}

}  // namespace portable

}  // namespace gyre
