// The linear map's products: at every size, on every thread, and within their matrices.
#include "gyre/kernels/linear.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gyre/kernels/linear_of_one.h"
#include "gyre/kernels/matrix_product.h"
#include "gyre/tensors/thread_count.h"

namespace gyre {
namespace {

using Tensors = std::vector<at::Tensor>;
constexpr std::array kTypes = {at::kFloat, at::kBFloat16};

// An update's gradient must not depend on the thread that computes it: every thread makes its own primitives.
TEST(Linear, BitsAreTheSameOnEveryThread) {
  at::manual_seed(6);
  for (const auto type : kTypes) {
    const at::Tensor x = at::randn({100, 96}).to(type), weight = at::randn({64, 96}).to(type);
    const at::Tensor grad = at::randn({100, 64}).to(type);
    const auto products = [&] {
      use_threads(1);
      at::Tensor gradient = at::zeros({64, 96});
      linear_backward_weight(x, grad, gradient);
      return Tensors{gyre::linear(x, weight, {}), linear_backward_input(grad, weight), gradient};
    };
    const Tensors here = products();
    std::vector<Tensors> there(3);
    {
      std::vector<std::jthread> threads;
      for (Tensors& result : there) threads.emplace_back([&] { result = products(); });
    }
    for (const Tensors& result : there) {
      for (size_t i = 0; i < here.size(); ++i) EXPECT_TRUE(result[i].equal(here[i])) << type << i;
    }
  }
}

// For a window's first microbatch the gradient's old contents, from another window, are overwritten.
TEST(Linear, WritesOverAGradientThatHoldsNoSum) {
  at::manual_seed(6);
  for (const auto type : kTypes) {
    const at::Tensor x = at::randn({3, 20, 24}).to(type), grad = at::randn({3, 20, 40}).to(type);
    for (const auto backward_weight : {&linear_backward_weight, &portable::linear_backward_weight}) {
      at::Tensor added = at::zeros({40, 24}), written = at::full({40, 24}, NAN);
      backward_weight(x, grad, added, /*adds=*/true);
      backward_weight(x, grad, written, /*adds=*/false);
      EXPECT_TRUE(written.equal(added)) << type;
      backward_weight(x, grad, written, /*adds=*/true);
      EXPECT_TRUE(written.equal(added * 2)) << type;
    }
  }
}

at::Tensor whole_numbers(at::IntArrayRef sizes, at::ScalarType type) {
  return at::randint(-3, 4, sizes, at::kFloat).to(type);
}
at::Tensor exact(const at::Tensor& x) {
  return x.to(at::kDouble);
}

// Uses whole numbers that bf16 and fp32 sums represent exactly, so that every implementation must give the same result,
// also for sizes that are no multiples of its blocks.
TEST(Linear, IsExactAtEverySize) {
  at::manual_seed(7);
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                         {1, 96, 80},
                                                                         {5, 33, 1100},
                                                                         {31, 64, 47},
                                                                         {33, 31, 65},
                                                                         {64, 700, 32},
                                                                         {100, 130, 2100},
                                                                         {1100, 90, 70},
                                                                         {600, 1025, 96}}) {
    for (const auto type : kTypes) {
      const at::Tensor x = whole_numbers({rows, in}, type), weight = whole_numbers({out, in}, type),
                       bias = whole_numbers({out}, type), grad = whole_numbers({rows, out}, type);
      const auto rounded = [type](const at::Tensor& exact) { return exact.to(at::kFloat).to(type); };
      const at::Tensor y = exact(x).mm(exact(weight).t());
      EXPECT_TRUE(gyre::linear(x, weight, {}).equal(rounded(y))) << type << rows << " " << in;
      EXPECT_TRUE(gyre::linear(x, weight, bias).equal(rounded(y + exact(bias)))) << type << rows << " " << in;
      EXPECT_TRUE(linear_backward_input(grad, weight).equal(rounded(exact(grad).mm(exact(weight)))))
          << type << rows << " " << in;
      at::Tensor gradient = at::ones({out, in});
      linear_backward_weight(x, grad, gradient);
      const at::Tensor product = exact(grad).t().mm(exact(x));
      EXPECT_TRUE(gradient.equal((product + 1).to(at::kFloat))) << type << rows << " " << in;
      linear_backward_weight(x, grad, gradient, /*adds=*/false);
      EXPECT_TRUE(gradient.equal(product.to(at::kFloat))) << type << rows << " " << in;
    }
  }
}

// A head's rows, a strip, a transpose: views are read in place, in stacks of matrices too.
TEST(MatrixProduct, IsExactForViews) {
  at::manual_seed(7);
  const std::vector<Tensors> factors = [] {
    const at::Tensor all = whole_numbers({6, 50, 70}, at::kFloat);
    const at::Tensor part = all.narrow(1, 7, 20).narrow(2, 3, 33), square = all.narrow(1, 0, 33).narrow(2, 0, 33);
    const at::Tensor column = all.narrow(2, 5, 1), row = all.narrow(1, 5, 1);
    return std::vector<Tensors>{{part, square},
                                {part, square.mT()},
                                {part.mT(), part},
                                {part, part.mT()},
                                {part.mT(), part.contiguous()},
                                {row, column.narrow(1, 0, 1).expand({6, 70, 1})},
                                {column, row},
                                {column.mT(), column},
                                {row, all.mT()},
                                {all.mT(), row.mT().narrow(1, 0, 50)},
                                {part.flip(2), square},
                                // A single column or row, with any stride to the next one.
                                {whole_numbers({6, 100}, at::kFloat).as_strided({6, 100, 1}, {100, 1, 34}),
                                 whole_numbers({6, 1, 64}, at::kFloat)},
                                {whole_numbers({6, 65}, at::kFloat).as_strided({6, 1, 65}, {65, 46, 1}),
                                 whole_numbers({6, 65}, at::kFloat).as_strided({6, 65, 1}, {65, 1, 17})}};
  }();
  for (const Tensors& pair : factors) {
    const at::Tensor &a = pair[0], &b = pair[1], expected = at::bmm(exact(a), exact(b)).to(at::kFloat);
    EXPECT_TRUE(matrix_product(a, b).equal(expected)) << a.sizes() << a.strides() << b.sizes() << b.strides();
    EXPECT_TRUE(matrix_product(a[1], b[1]).equal(expected[1])) << a.sizes() << a.strides() << b.strides();
    const at::Tensor in_threads = [&] {
      at::Tensor result;
      std::jthread([&] {
        use_threads(3);
        result = matrix_product(a, b);
      }).join();
      return result;
    }();
    EXPECT_TRUE(in_threads.equal(expected)) << a.sizes() << a.strides() << b.sizes() << b.strides();
  }
  EXPECT_EQ(matrix_product(at::ones({0, 3}), at::ones({3, 2})).sizes(), at::IntArrayRef({0, 2}));
  EXPECT_TRUE(matrix_product(at::ones({2, 4, 0}), at::ones({2, 0, 5})).equal(at::zeros({2, 4, 5})));
}

// A text that is generated token by token is to be that of forwards of all tokens.
TEST(Linear, OfOneRowHasTheBitsOfARowOfMany) {
  at::manual_seed(7);
  for (const auto& [in, out] :
       std::vector<std::array<int64_t, 2>>{{1, 1}, {33, 47}, {96, 80}, {384, 1152}, {1000, 300}, {3072, 768}}) {
    for (const auto type : kTypes) {
      const at::Tensor x = at::randn({1, 40, in}).to(type), weight = at::randn({out, in}).to(type);
      for (const at::Tensor& bias : {at::Tensor(), at::randn({out}).to(type)}) {
        const at::Tensor many = gyre::linear(x, weight, bias);
        LinearOfOne of_one;
        for (const int64_t row : {0, 39, 7}) {
          const at::Tensor one = of_one(x.narrow(1, row, 1), weight, bias), expected = many.narrow(1, row, 1);
          EXPECT_EQ(one.scalar_type(), type);
          ASSERT_EQ(one.sizes(), expected.sizes());
          const double difference = (one - expected).abs().max().item<double>();
          // oneDNN 3.7 adds up long rows in an order that depends on their number, which may show in the last bit.
          const bool exact = has_fast_bf16_products() && in <= 1000;
          const double most = type == at::kFloat ? 1e-5 : exact ? 0 : 1e-2;
          EXPECT_LE(difference, most * expected.abs().max().item<double>()) << type << in << " " << out << " " << row;
        }
      }
    }
  }
}

// Memory beyond a matrix must not influence its product.
TEST(Linear, ReadsNothingBesideItsMatrices) {
  at::manual_seed(8);
  const int64_t rows = 37, in = 45, out = 51;
  for (const auto type : kTypes) {
    const auto within_nan = [type](int64_t count) {
      at::Tensor all = at::full({count + 200}, NAN).to(type);
      all.narrow(0, 100, count).copy_(at::randn({count}));
      return all.narrow(0, 100, count);
    };
    const at::Tensor x = within_nan(rows * in).view({rows, in}), weight = within_nan(out * in).view({out, in}),
                     grad = within_nan(rows * out).view({rows, out});
    at::Tensor gradient = at::zeros({out, in});
    linear_backward_weight(x, grad, gradient);
    for (const at::Tensor& result : {gyre::linear(x, weight, {}), linear_backward_input(grad, weight), gradient}) {
      EXPECT_TRUE(at::isfinite(result).all().item<bool>()) << type;
    }
  }
}

// Only for gyre's own products: how oneDNN divides its work depends on the number of threads.
TEST(Linear, BitsAreThoseOfOneThreadOnSeveral) {
  if (!bf16_products().starts_with("gyre ")) GTEST_SKIP() << bf16_products();
  at::manual_seed(9);
  const int64_t rows = 300, in = 1100, out = 430;
  const at::Tensor x = at::randn({rows, in}).to(at::kBFloat16), weight = at::randn({out, in}).to(at::kBFloat16),
                   grad = at::randn({rows, out}).to(at::kBFloat16);
  std::vector<Tensors> results;
  for (const int threads : {1, 2, 3}) {
    std::jthread([&] {
      use_threads(threads);
      at::Tensor gradient = at::ones({out, in});
      linear_backward_weight(x, grad, gradient);
      results.push_back({gyre::linear(x, weight, {}), gyre::linear(x.narrow(0, 0, 7), weight, {}),
                         linear_backward_input(grad, weight), gradient});
    }).join();
  }
  for (const Tensors& result : results) {
    for (size_t i = 0; i < result.size(); ++i) EXPECT_TRUE(result[i].equal(results[0][i])) << i;
  }
}

// As gyre-engine does before it computes.
class HeedsLimit final : public testing::Environment {
 public:
  void SetUp() override { heed_limit_of_instructions(); }
};
[[maybe_unused]] const auto* const kHeedsLimit = testing::AddGlobalTestEnvironment(new HeedsLimit);

// The tests kernels.Without... repeat this and the tests above with fewer CPU instructions.
TEST(Linear, TakesWhatTheCpuHas) {
  const std::string products = bf16_products();
  const char* most = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string isa = most == nullptr ? "ALL" : most;
  const bool without = products.starts_with("in fp32 (") || products.starts_with("libtorch ("),
             onednn = products.starts_with("oneDNN ");
  // Where libtorch's products of bf16 are slow, kernels do without them.
  const at::Tensor a = at::randn({2, 5, 7}).to(at::kBFloat16), b = at::randn({2, 7, 3}).to(at::kBFloat16);
  EXPECT_TRUE((isa != "AVX2" && isa != "AVX512_CORE") || is_widened(a));
  EXPECT_FALSE(is_widened(a.to(at::kFloat)));
  if (is_widened(a)) {
    EXPECT_TRUE(matrix_product(a, b).equal(matrix_product(a.to(at::kFloat), b.to(at::kFloat)).to(at::kBFloat16)));
    EXPECT_TRUE(
        matrix_product(a[0], b[0]).equal(matrix_product(a[0].to(at::kFloat), b[0].to(at::kFloat)).to(at::kBFloat16)));
  }
  EXPECT_TRUE(without || (onednn && isa != "AVX512_CORE" && isa != "AVX2") ||
              (products == "gyre (AMX)" && isa == "ALL"))
      << products << " with " << isa;
}

}  // namespace
}  // namespace gyre
