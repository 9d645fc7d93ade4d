// The optimizers' kernels and clipping: what their fast ways on the CPU give, their portable paths give too.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fixture.h"
#include "gyre/optim/clipping.h"
#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/optim/parameter/mixed_kernels.h"
#include "gyre/optim/parameter/rotation_products.h"

namespace gyre {
namespace {

using namespace testing_support;

using Tensors = std::vector<at::Tensor>;
using Kernel = std::function<void(const Tensors&)>;  // changes what it is given

Tensors clones(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

// Several times in a row, so that what is kept from one time to the next is compared too.
void expect_same_values(const Tensors& inputs, const Kernel& fast, const Kernel& portable) {
  const Tensors a = clones(inputs), b = clones(inputs);
  for (int time = 0; time < 3; ++time) {
    fast(a);
    portable(b);
  }
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::allclose(a[i], b[i], 1e-5, 1e-6)) << "tensor " << i << " of shape " << a[i].sizes();
    EXPECT_FALSE(a[i].isnan().any().item<bool>());
  }
}

TEST(Portable, AdamKernels) {
  at::manual_seed(31);
  for (const int64_t count : {1, 7, 1000}) {
    const Tensors tensors = {at::randn({count}), at::randn({count}), at::randn({count}), at::rand({count})};
    for (const AdamFactors& f : adams_and_nadams()) {
      for (const double factor : {1.0, 0.3}) {
        const auto step = [&](const Tensors& in) { adamw_step(in[0], in[1], in[2], in[3], f, 1e-2, 1e-3, factor); };
        const auto portable_step = [&](const Tensors& in) {
          portable::adamw_step(in[0], in[1], in[2], in[3], f, 1e-2, 1e-3, factor);
        };
        expect_same_values(tensors, step, portable_step);
      }
      const auto direction = [&](const auto& kernel) {
        return [&](const Tensors& in) { kernel(in[1], in[2], in[3], f); };
      };
      expect_same_values(tensors, direction(adam_direction), direction(portable::adam_direction));
    }
  }
}

// Devices make the step with error feedback in passes, as it is made here of a weight whose rows are not adjacent.
TEST(Portable, ErrorFeedback) {
  at::manual_seed(33);
  const Tensors tensors = {at::randn({9, 7}), at::randn({9, 7}), at::randn({9, 7}), at::rand({9, 7})};
  const AdamFactors factors = adam_factors(0.9, 0.99, 1e-8, 3);
  for (const bool late : {false, true}) {
    for (const at::Tensor& last : {at::zeros({9, 7}), at::randn({9, 7})}) {
      const auto step = [&](const at::Tensor& weight, const at::Tensor& last_step, const Tensors& in) {
        adamw_step(FedBack<at::Tensor>{weight, last_step, late}, in[1], in[2], in[3], factors, 1e-2, 1e-3, 0.3);
      };
      Tensors all = tensors;
      all.push_back(last);
      expect_same_values(
          all, [&](const Tensors& in) { step(in[0], in[4], in); },
          [&](const Tensors& in) {
            const at::Tensor apart = in[0].t().contiguous().t();
            step(apart, in[4], in);
            in[0].copy_(apart);
          });
    }
  }
}

TEST(Portable, SumsOfTwoTypes) {
  at::manual_seed(32);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensors tensors = {at::randn({19, 21}), at::randn({19, 21}).to(type)};
    const auto average = [](const auto& kernel) { return [&](const Tensors& in) { kernel(in[0], in[1], 0.9); }; };
    expect_same_values(tensors, average(average_into), average(portable::average_into));
    const auto subtract = [](const Tensors& in) { subtract_scaled(in[0], in[1], 0.3, 0.99); };
    const auto portable_subtract = [](const Tensors& in) { portable::subtract_scaled(in[0], in[1], 0.3, 0.99); };
    expect_same_values(tensors, subtract, portable_subtract);
    const auto part = [](const auto& kernel) {
      return [&](const Tensors& in) { kernel(in[0].narrow(1, 2, 9), in[1].narrow(1, 5, 9), 0.9); };
    };
    expect_same_values(tensors, part(average_into), part(portable::average_into));
  }
}

TEST(Portable, DifferencesOfTwoTypes) {
  at::manual_seed(34);
  for (const auto a : {at::kFloat, at::kBFloat16}) {
    for (const auto b : {at::kFloat, at::kBFloat16}) {
      const Tensors tensors = {at::zeros({19, 40}), at::randn({19, 21}).to(a), at::randn({19, 30}).to(b)};
      const auto difference = [](const auto& kernel) {
        return [&](const Tensors& in) { kernel(in[0].narrow(1, 7, 21), in[1], in[2].narrow(1, 3, 21)); };
      };
      expect_same_values(tensors, difference(set_difference), difference(portable::set_difference));
      difference(set_difference)(tensors);
      EXPECT_EQ(tensors[0].narrow(1, 0, 7).abs().max().item<double>(), 0) << "beside it";
    }
  }
}

// Products of a type whose factors lie in every way; some are too small for bf16.
TEST(Portable, ProductsInFp32OfRoundedFactors) {
  at::manual_seed(35);
  for (const int64_t k : {8, 200}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor a = at::randn({kBf16From, k}).to(type), b = at::randn({k, kBf16From + 3}).to(type);
      for (const bool turned : {false, true}) {
        const at::Tensor left = turned ? a.t().contiguous().t() : a, right = turned ? b.t().contiguous().t() : b;
        for (const bool bf16 : {false, true}) {
          const at::Tensor found = product_in_fp32(left, right, bf16);
          EXPECT_EQ(found.scalar_type(), at::kFloat);
          const at::Tensor expected = portable::product_in_fp32(left, right, bf16);
          EXPECT_TRUE(at::allclose(found, expected, 1e-5, 1e-4));
          const double off = (product_in_either(left, right, bf16).to(at::kFloat) - expected).norm().item<double>();
          EXPECT_LT(off, 0.01 * expected.norm().item<double>());
        }
      }
    }
  }
}

// Parts of matrices and repeated rows, as factors of every kind of result.
TEST(Portable, ProductsOfFactorsWithGaps) {
  at::manual_seed(36);
  constexpr int64_t kSize = kBf16From + 5;
  const at::Tensor whole = at::randn({kSize + 40, kSize + 30}).to(at::kBFloat16);
  const at::Tensor part = whole.narrow(0, 3, kSize).narrow(1, 7, kSize), repeated = whole.narrow(0, 1, 1);
  for (const at::Tensor& a : {part, part.t(), repeated.expand({kSize, -1}).narrow(1, 0, kSize)}) {
    for (const at::Tensor& b : {part, part.t()}) {
      const at::Tensor expected = portable::product_in_fp32(a, b, true);
      EXPECT_TRUE(at::allclose(product_in_fp32(a, b, true), expected, 1e-5, 1e-4));
      const double off = (product(a, b, true).to(at::kFloat) - expected).norm().item<double>();
      EXPECT_LT(off, 0.01 * expected.norm().item<double>());
    }
  }
}

// Of every size of a last strip, of few and of many columns, and of transposes.
TEST(Portable, SquaresByStrips) {
  at::manual_seed(37);
  const auto half = at::kBFloat16;
  for (const int64_t size : {50, 96, 97, 200, 389}) {
    for (const int64_t k : {8, 200}) {
      const at::Tensor x = at::randn({size, k}), columns = at::randn({k, size}).t();
      for (const at::Tensor& of : {x, columns, x.to(half), columns.to(half), x.narrow(1, 1, k - 3)}) {
        for (const bool bf16 : {false, true}) {
          const at::Tensor found = at::zeros({size, size}), expected = at::zeros({size, size});
          for (int time = 0; time < 2; ++time) {
            average_square_into(found, of, 0.9, bf16);
            portable::average_square_into(expected, of, 0.9, bf16);
          }
          complete(found);
          EXPECT_TRUE(at::allclose(found, expected, 1e-5, 1e-4)) << size << " x " << k;
        }
      }
    }
  }
}

TEST(Portable, RoundingToBf16IsEqualToTheBit) {
  at::manual_seed(33);
  // A tie to either side, and what rounds up to infinity.
  const at::Tensor edges = at::tensor({1.00390625f, 1.01171875f, -3.4e38f, 3.4e38f, 0.0f, -0.0f});
  const at::Tensor values = at::cat({at::randn({24}), edges}).view({5, 6});
  for (const at::Tensor& x : {values, values.t(), values.narrow(1, 1, 4), values.slice(1, 0, 6, 2)}) {
    EXPECT_TRUE(to_bf16(x).equal(portable::to_bf16(x)));
    EXPECT_EQ(to_bf16(x).strides(), x.is_non_overlapping_and_dense() ? x.strides() : x.contiguous().strides());
  }
}

TEST(Portable, Norms) {
  at::manual_seed(34);
  const Tensors gradients = {at::randn({13, 7}), at::randn({101}), at::randn({1})};
  const at::Tensor squared = squared_norms(gradients), same = portable::squared_norms(gradients);
  EXPECT_TRUE(at::allclose(squared, same, 1e-12, 0));
  const Tensors parts = {squared.narrow(0, 0, 1), squared.narrow(0, 1, 2)};
  const at::Tensor norm = whole_norm(parts);
  EXPECT_TRUE(at::allclose(norm, portable::whole_norm(parts), 1e-12, 0));
}

}  // namespace
}  // namespace gyre
