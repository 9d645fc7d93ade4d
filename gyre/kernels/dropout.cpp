#include "gyre/kernels/dropout.h"

#include <ATen/ATen.h>

#include "gyre/kernels/cuda/kernels.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

at::Tensor cpu_mask(const at::Tensor& x, double probability, const RandomStream& stream) {
  at::Tensor mask = at::empty(x.sizes(), x.options().dtype(at::kFloat));
  const uint32_t threshold = dropout_threshold(probability);
  const float keep = dropout_kept_value(probability);
  auto* out = mask.data_ptr<float>();
  for (int64_t i = 0; i < mask.numel(); i += 4) {
    const auto words = stream.block(static_cast<uint32_t>(i / 4));
    for (int64_t j = 0; j < 4 && i + j < mask.numel(); ++j)
      out[i + j] = words[static_cast<size_t>(j)] < threshold ? 0 : keep;
  }
  return mask.to(x.scalar_type());
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

uint32_t dropout_threshold(double probability) {
  return static_cast<uint32_t>(probability * 0x1.0p32);
}

float dropout_kept_value(double probability) {
  return static_cast<float>(1.0 / (1.0 - probability));
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
  const at::Tensor keep = words.ge(int64_t{dropout_threshold(probability)});
  return keep.to(at::kFloat).mul_(dropout_kept_value(probability)).to(x.scalar_type()).view(x.sizes());
}

}  // namespace portable

}  // namespace gyre
