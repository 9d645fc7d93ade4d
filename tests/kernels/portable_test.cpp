// Tests portable paths: compares their values with those of the fast paths on the CPU, and runs every kernel on
// libtorch's `meta` device, which has shapes and types but no data, so a kernel that touches a pointer or makes a
// tensor on another device fails. Where there is a GPU, most kernels also run there, and give the CPU's values.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>
#include <tuple>
#include <vector>

#include "gyre/kernels/activation.h"
#include "gyre/kernels/attention.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/cross_entropy.h"
#include "gyre/kernels/dropout.h"
#include "gyre/kernels/embedding.h"
#include "gyre/kernels/layer_norm.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/rms_norm.h"
#include "gyre/kernels/rotary.h"
#include "gyre/kernels/rows.h"
#include "gyre/kernels/sdpa.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/thread_count.h"

namespace gyre {
namespace {

using Tensors = std::vector<at::Tensor>;
using Kernel = std::function<Tensors(Tensors)>;  // may change its arguments

Tensors clones(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

Tensors on(at::Device device, const Tensors& tensors) {
  Tensors moved;
  for (const at::Tensor& tensor : tensors) moved.push_back(tensor.defined() ? tensor.to(device) : tensor);
  return moved;
}

// The kernel, of tensors that it takes to the GPU and back.
Kernel on_gpu(const Kernel& kernel) {
  return [kernel](const Tensors& tensors) { return on(at::kCPU, kernel(on(at::kCUDA, tensors))); };
}

// For fp32 inputs, converted to fp32 and bf16: the portable path gives what the fast path gives, except for rounding.
// If `rounds_sums`, sums of bf16 numbers that are fp32 may have been rounded to bf16.
void expect_same_values(const Tensors& inputs, const Kernel& fast, const Kernel& portable, double of_bf16 = 1e-2,
                        bool rounds_sums = false) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    Tensors given;
    for (const at::Tensor& input : inputs) given.push_back(input.is_floating_point() ? input.to(type) : input);
    const Tensors a = fast(clones(given)), b = portable(clones(given));
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].scalar_type(), b[i].scalar_type()) << i;
      ASSERT_EQ(a[i].sizes(), b[i].sizes()) << i;
      const at::Tensor difference = (a[i].to(at::kDouble) - b[i].to(at::kDouble)).abs();
      const double size = b[i].to(at::kDouble).abs().max().item<double>();
      const bool in_bf16 = (rounds_sums ? type : a[i].scalar_type()) == at::kBFloat16;
      const double tolerance = in_bf16 ? of_bf16 : 5e-6;
      EXPECT_LT(difference.max().item<double>(), tolerance * std::max(1.0, size)) << i << ", " << at::toString(type);
    }
  }
}

// In fp32 and bf16: shapes and types on `meta` are those on the CPU.
void expect_same_on_meta(const Tensors& inputs, const Kernel& kernel) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    Tensors given, meta;
    for (const at::Tensor& input : inputs) {
      given.push_back(input.is_floating_point() ? input.to(type) : input.clone());
      meta.push_back(given.back().to(at::kMeta));
    }
    const Tensors a = kernel(given), b = kernel(meta);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_TRUE(b[i].is_meta()) << i;
      EXPECT_EQ(a[i].scalar_type(), b[i].scalar_type()) << i << ", " << at::toString(type);
      EXPECT_EQ(a[i].sizes(), b[i].sizes()) << i;
    }
  }
}

void expect_both(const Tensors& inputs, const Kernel& fast, const Kernel& portable, double of_bf16 = 1e-2) {
  at::manual_seed(1);
  expect_same_values(inputs, fast, portable, of_bf16);
  expect_same_on_meta(inputs, fast);
  if (device_count(at::kCUDA) > 0) expect_same_values(inputs, on_gpu(fast), portable, of_bf16, /*rounds_sums=*/true);
}

TEST(Portable, LayerNorm) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({3, 5, 40}) * 2 + 1, grad = at::randn({3, 5, 40});
  for (const bool bias : {false, true}) {
    const auto kernel = [bias](auto&& forward, auto&& backward, auto&& again) {
      return [=](const Tensors& in) {
        const at::Tensor added = bias ? in[2] : at::Tensor();
        const auto norm = forward(in[0], in[1], added, 1e-5);
        const auto gradients = backward(in[3], in[0], norm.mean, norm.rstd, in[1]);
        return Tensors{
            norm.output,     norm.mean,        norm.rstd,     again(in[0], norm.mean, norm.rstd, in[1], added),
            gradients.input, gradients.weight, gradients.bias};
      };
    };
    expect_both({x, at::randn({40}), at::randn({40}), grad}, kernel(layer_norm, layer_norm_backward, layer_norm_output),
                kernel(portable::layer_norm, portable::layer_norm_backward, portable::layer_norm_output));
  }
}

TEST(Portable, RmsNorm) {
  at::manual_seed(2);
  const auto kernel = [](auto&& forward, auto&& backward, auto&& again) {
    return [=](const Tensors& in) {
      const auto norm = forward(in[0], in[1], 1e-5);
      const auto gradients = backward(in[2], in[0], norm.rstd, in[1]);
      return Tensors{norm.output, norm.rstd, again(in[0], norm.rstd, in[1]), gradients.input, gradients.weight};
    };
  };
  for (const int64_t width : {1, 7, 40}) {
    expect_both({at::randn({3, 5, width}) * 2 + 1, at::randn({width}), at::randn({3, 5, width})},
                kernel(rms_norm, rms_norm_backward, rms_norm_output),
                kernel(portable::rms_norm, portable::rms_norm_backward, portable::rms_norm_output));
  }
}

TEST(Portable, AttentionSoftmax) {
  at::manual_seed(3);
  for (const bool causal : {false, true}) {
    const auto kernel = [causal](auto&& forward, auto&& backward) {
      return [=](Tensors in) {
        forward(in[0], 0.3, causal);
        backward(in[1], in[0], 0.3, causal);
        return in;
      };
    };
    // If causal, gradients of hidden probabilities do not matter.
    for (const int64_t rows : {9, 4, 1}) {
      expect_both({at::randn({6, rows, 9}) * 3, at::randn({6, rows, 9})},
                  kernel(attention_softmax_in_place, attention_softmax_backward_in_place),
                  kernel(portable::attention_softmax_in_place, portable::attention_softmax_backward_in_place));
    }
  }
}

TEST(Portable, HeadRows) {
  at::manual_seed(9);
  const auto kernel = [](auto&& copy, auto&& set, auto&& add) {
    return [=](const Tensors& in) {
      const at::Tensor by_head = at::empty({2, 3, 7, 5}, in[0].options());
      copy(by_head, in[0].transpose(1, 2));
      const at::Tensor block = at::zeros({2, 9, 3, 5}, in[0].options());
      copy(block.narrow(1, 2, 7), by_head.transpose(1, 2));
      const at::Tensor sum = at::zeros({6, 7, 5}, in[0].options().dtype(at::kFloat));
      set(sum, in[1]);
      add(sum, in[2]);
      return Tensors{by_head, block, sum};
    };
  };
  expect_both({at::randn({2, 7, 3, 5}), at::randn({6, 7, 5}), at::randn({6, 4, 5})},
              kernel(copy_head_rows, set_keys, add_keys),
              kernel(portable::copy_head_rows, portable::set_keys, portable::add_keys));
}

Tensors attention_and_gradients(const Tensors& in, const AttentionHeads& heads, bool causal) {
  const HeadTensors of = split_heads(in[0], heads);
  const Attended attended = attention(of, causal);
  return {attended.output, attention_backward(in[1], of, attended, causal)};
}

// ATen's path rounds partial sums to bf16, so the reference is computed in fp32, from the same numbers.
Kernel portable_attention_in_fp32(const AttentionHeads& heads, bool causal) {
  return [=](const Tensors& in) {
    const HeadTensors of = split_heads(in[0].to(at::kFloat), heads);
    Tensors results = {portable::attention(of, causal), portable::attention_backward(in[1].to(at::kFloat), of, causal)};
    for (at::Tensor& result : results) result = result.to(in[0].scalar_type());
    return results;
  };
}

// Whole blocks of queries, partial ones, sizes that are no multiple of any block size, and a context that is tiled.
TEST(Portable, Attention) {
  at::manual_seed(10);
  for (const auto& [context, size] : {std::pair<int64_t, int64_t>{5, 6}, {128, 16}, {300, 33}, {2111, 8}}) {
    for (const AttentionHeads heads : {AttentionHeads{3, 3}, AttentionHeads{4, 2}}) {
      for (const bool causal : {true, false}) {
        const Tensors inputs = {at::randn({2, context, (heads.query + 2 * heads.key_value) * size}),
                                at::randn({2, context, heads.query * size})};
        expect_both(
            inputs, [=](const Tensors& in) { return attention_and_gradients(in, heads, causal); },
            portable_attention_in_fp32(heads, causal),
            /*of_bf16=*/2e-2);
      }
    }
  }
}

// What GPUs use; libtorch has it on the CPU too.
TEST(Portable, AttentionOfLibtorch) {
  if (!sdpa::is_there()) GTEST_SKIP() << "this libtorch is older than 2.0";
  at::manual_seed(14);
  const c10::NoGradGuard no_grad;  // as in workers
  for (const auto& [context, size] : {std::pair<int64_t, int64_t>{1, 8}, {5, 6}, {128, 16}, {300, 64}}) {
    for (const AttentionHeads heads : {AttentionHeads{3, 3}, AttentionHeads{4, 2}}) {
      for (const bool causal : {true, false}) {
        const Tensors inputs = {at::randn({2, context, (heads.query + 2 * heads.key_value) * size}),
                                at::randn({2, context, heads.query * size})};
        expect_same_values(
            inputs,
            [=](const Tensors& in) {
              const HeadTensors of = split_heads(in[0], heads);
              const Attended attended = sdpa::attention(of, causal);
              EXPECT_FALSE(attended.output.requires_grad());
              Tensors results = {attended.output, attention_backward(in[1], of, attended, causal)};
              EXPECT_FALSE(results[1].requires_grad());
              return results;
            },
            portable_attention_in_fp32(heads, causal),
            /*of_bf16=*/2e-2);
      }
    }
  }
}

// Contiguous heads, as norms of queries and keys return them, and heads in the rows of a projection.
TEST(Attention, BitsDoNotDependOnWhereHeadsLie) {
  at::manual_seed(12);
  const AttentionHeads heads{4, 2};
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t context : {1, 40, 150, 2100}) {
      const at::Tensor qkv = at::randn({2, context, 8 * 16}).to(type), grad = at::randn({2, context, 4 * 16}).to(type);
      const HeadTensors views = split_heads(qkv, heads);
      const HeadTensors each = {views.query.contiguous(), views.key.contiguous(), views.value.contiguous()};
      const Attended of_views = attention(views, true), of_each = attention(each, true);
      EXPECT_TRUE(of_views.output.equal(of_each.output));
      EXPECT_TRUE(attention_backward(grad, views, of_views, true).equal(attention_backward(grad, each, of_each, true)));
    }
  }
}

// Each head is computed by one thread, so the number of threads does not change bits. (It does with ATen's products.)
TEST(Attention, BitsAreThoseOfOneThreadOnSeveral) {
  if (!has_fast_bf16_products()) GTEST_SKIP() << bf16_products();
  at::manual_seed(11);
  const Tensors inputs = {at::randn({2, 200, 8 * 16}).to(at::kBFloat16), at::randn({2, 200, 4 * 16}).to(at::kBFloat16)};
  std::vector<Tensors> results;
  for (const int threads : {1, 2, 3}) {
    std::jthread([&] {
      use_threads(threads);
      results.push_back(attention_and_gradients(inputs, {4, 2}, true));
    }).join();
  }
  for (const Tensors& result : results) {
    for (size_t i = 0; i < result.size(); ++i) EXPECT_TRUE(result[i].equal(results[0][i])) << i;
  }
}

TEST(Portable, Embedding) {
  at::manual_seed(4);
  const auto kernel = [](auto&& forward, auto&& backward) {
    return [=](const Tensors& in) {
      at::Tensor gradient = at::zeros({7, 6}, in[0].options().dtype(at::kFloat));
      backward(in[1], in[2], gradient);
      return Tensors{forward(in[0], in[2]), gradient};
    };
  };
  expect_both({at::randn({7, 6}), at::randn({3, 5, 6}), at::randint(7, {3, 5}, at::kLong)},
              kernel(embed, embed_backward), kernel(portable::embed, portable::embed_backward));
}

TEST(Portable, DropoutMasksAreEqualToTheBit) {
  const RandomStream stream(3, StreamPurpose::Dropout, (uint64_t{1} << 33) + 5, 7);
  for (const int64_t count : {1, 2, 5, 4096}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::empty({count, 3}, type);
      EXPECT_TRUE(dropout_mask(x, 0.3, stream).equal(portable::dropout_mask(x, 0.3, stream)));
    }
  }
  expect_same_on_meta({at::randn({3, 5})},
                      [&](const Tensors& in) { return Tensors{dropout_mask(in[0], 0.3, stream)}; });
}

TEST(Portable, DropoutIsEqualToTheBit) {
  at::manual_seed(9);
  const RandomStream stream(3, StreamPurpose::Dropout, 5, 7);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({61, 35}).to(type), mask = dropout_mask(x, 0.1, stream);
    at::Tensor ours = at::empty_like(x), theirs = at::empty_like(x), in_place = x.clone();
    apply_dropout(x, mask, 0.1, ours);
    portable::apply_dropout(x, mask, 0.1, theirs);
    apply_dropout(in_place, mask, 0.1, in_place);
    EXPECT_TRUE(ours.equal(theirs));
    EXPECT_TRUE(in_place.equal(theirs));
    at::Tensor columns = x.t().contiguous().t();
    apply_dropout(columns, mask, 0.1, columns);
    EXPECT_TRUE(columns.equal(theirs));
  }
  expect_same_on_meta({at::randn({3, 5})}, [&](const Tensors& in) {
    at::Tensor result = at::empty_like(in[0]);
    apply_dropout(in[0], dropout_mask(in[0], 0.3, stream), 0.3, result);
    return Tensors{result};
  });
}

// Sizes that are no multiple of any block size, one row, and rows that are not adjacent.
TEST(Portable, Linear) {
  at::manual_seed(5);
  for (const auto& [rows, in, out] :
       {std::tuple<int64_t, int64_t, int64_t>{15, 40, 24}, {1, 7, 5}, {3, 40, 1}, {67, 33, 129}}) {
    const auto kernel = [](auto&& forward, auto&& input, auto&& weight, auto&& bias) {
      return [=](const Tensors& in) {
        const auto wide = in[0].options().dtype(at::kFloat);
        // The old contents stay in the sum.
        at::Tensor of_weight = at::ones(in[1].sizes(), wide), of_bias = at::ones(in[2].sizes(), wide);
        const at::Tensor grad = in[3].transpose(0, 1);
        weight(in[0], grad, of_weight, true);
        bias(grad, of_bias, true);
        at::Tensor overwritten = at::full(in[2].sizes(), NAN, wide);
        bias(grad, overwritten, false);
        at::Tensor product = at::full(in[1].sizes(), NAN, wide);
        weight(in[0], grad, product, false);
        // In bf16 libtorch's product rounds the gradient before it is added.
        return Tensors{forward(in[0], in[1], in[2]),
                       forward(in[0], in[1], {}),
                       input(grad, in[1]),
                       of_weight.to(in[0].scalar_type()),
                       product.to(in[0].scalar_type()),
                       of_bias,
                       overwritten};
      };
    };
    const auto fast = kernel(linear, linear_backward_input, linear_backward_weight, linear_backward_bias);
    const Tensors inputs = {at::randn({rows, 2, in}), at::randn({out, in}), at::randn({out}),
                            at::randn({2, rows, out})};
    const Kernel reference = [kernel = kernel(portable::linear, portable::linear_backward_input,
                                              portable::linear_backward_weight,
                                              portable::linear_backward_bias)](const Tensors& given) {
      // The portable path rounds intermediate results to bf16, so the reference is computed in fp32 from the same
      // numbers.
      Tensors wide;
      for (const at::Tensor& tensor : given) wide.push_back(tensor.to(at::kFloat));
      Tensors result = kernel(wide);
      for (size_t i = 0; i < 5; ++i) result[i] = result[i].to(given[0].scalar_type());
      return result;
    };
    expect_same_values(inputs, fast, reference);
    expect_same_on_meta(inputs, fast);
    if (device_count(at::kCUDA) > 0) expect_same_values(inputs, on_gpu(fast), reference);
  }
}

TEST(Portable, Activations) {
  at::manual_seed(7);
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
    // ATen rounds intermediate results to bf16, so the portable path is run in fp32, on the same numbers.
    const auto kernel = [activation](auto&& forward, auto&& backward, bool wide) {
      return [=](const Tensors& in) {
        const at::Tensor x = wide ? in[0].to(at::kFloat) : in[0], grad = wide ? in[1].to(at::kFloat) : in[1];
        const ActivationBackward both = backward(grad, x, activation);
        const auto type = in[0].scalar_type();
        return Tensors{forward(x, activation).to(type), both.grad.to(type), both.output.to(type)};
      };
    };
    expect_both({at::randn({3, 37}) * 4, at::randn({3, 37})}, kernel(activate, activate_backward, false),
                kernel(portable::activate, portable::activate_backward, true));
  }
}

TEST(Portable, GatedActivations) {
  at::manual_seed(7);
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
    const auto kernel = [activation](auto&& forward, auto&& backward) {
      return [=](const Tensors& in) {
        const ActivationBackward both = backward(in[1], in[0], activation);
        return Tensors{forward(in[0], activation), both.grad, both.output};
      };
    };
    expect_both({at::randn({3, 2 * 37}) * 4, at::randn({3, 37})}, kernel(gated_activate, gated_activate_backward),
                kernel(portable::gated_activate, portable::gated_activate_backward));
  }
}

// Both paths give the same bits, so results do not depend on the machine's instructions.
TEST(Portable, RotaryPositionsToTheBit) {
  at::manual_seed(7);
  for (const int64_t size : {6, 64}) {
    const RotaryPositions positions(9, rotary_frequencies(size, 1e4));
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      // Heads as views into the rows of a projection.
      const at::Tensor rows = at::randn({2, 5, 3 * size}).to(type);
      const auto heads = [&](const at::Tensor& of) { return of.view({2, 5, 3, size}).transpose(1, 2); };
      const at::Tensor x = heads(rows);
      const RotaryAngles angles = positions.angles(2, 5, x);
      at::Tensor fast = heads(rows.clone()), portable = x.contiguous();
      rotate_in_place(fast, angles);
      portable::rotate_in_place(portable, angles);
      EXPECT_TRUE(fast.equal(portable)) << size;
      EXPECT_FALSE(fast.equal(x));
      rotate_back_in_place(fast, angles);
      portable::rotate_back_in_place(portable, angles);
      EXPECT_TRUE(fast.equal(portable)) << size;
      EXPECT_TRUE(fast.to(at::kFloat).allclose(x.to(at::kFloat), 0.02, 0.02));
    }
  }
}

// Cached angles, angles computed for the call (fp64, or beyond the context), and angles from a later position agree.
TEST(Rotary, AnglesOfPositions) {
  const RotaryPositions positions(8, rotary_frequencies(6, 1e4));
  const at::Tensor single = at::zeros({1}), exact = at::zeros({1}, at::kDouble);
  const RotaryAngles all = positions.angles(0, 8, single), beyond = positions.angles(0, 11, single);
  EXPECT_TRUE(all.cos.equal(beyond.cos.narrow(0, 0, 8)) && all.sin.equal(beyond.sin.narrow(0, 0, 8)));
  EXPECT_TRUE(positions.angles(3, 5, single).sin.equal(all.sin.narrow(0, 3, 5)));
  EXPECT_TRUE(positions.angles(0, 8, exact).cos.to(at::kFloat).equal(all.cos));
  EXPECT_NEAR(all.cos[5][1].item<double>(), std::cos(5 / std::pow(1e4, 2.0 / 6)), 1e-7);
}

// The backward recomputes the activation's output, which the gradient of the MLP's second matrix needs, to the bit.
TEST(Activation, TheBackwardGivesTheForwardsBits) {
  const at::Tensor x = at::arange(-20, 20, 1.0 / 64), grad = at::randn(x.sizes());
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor given = x.to(type), g = grad.to(type);
      EXPECT_TRUE(activate_backward(g, given, activation).output.equal(activate(given, activation)));
      const at::Tensor gates = given.view({-1, 2}), half = g.slice(0, 0, gates.size(0)).view({-1, 1});
      EXPECT_TRUE(gated_activate_backward(half, gates, activation).output.equal(gated_activate(gates, activation)));
    }
  }
}

// For every bf16 below 1e4, against fp64: the error is at most half a step of bf16 plus that of erf's approximation.
TEST(Activation, InBf16IsAsGoodAsBf16) {
  const at::Tensor bits = at::arange(0, 1 << 16, at::kInt).to(at::kShort);
  const at::Tensor all = bits.view(at::kBFloat16), x = all.masked_select(all.to(at::kFloat).abs() < 1e4);
  const at::Tensor exact = x.to(at::kDouble), one = at::ones_like(x);
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Silu}) {
    const ActivationBackward expected = portable::activate_backward(at::ones_like(exact), exact, activation);
    const ActivationBackward ours = activate_backward(one, x, activation);
    for (const auto& [a, b] : {std::pair(ours.output, expected.output), std::pair(ours.grad, expected.grad)}) {
      const at::Tensor allowed = b.abs() * (1.01 / 256) + exact.abs() * 2e-7 + 1e-7;
      EXPECT_TRUE(((a.to(at::kDouble) - b).abs() <= allowed).all().item<bool>()) << static_cast<int>(activation);
    }
  }
}

// Against fp64: the error is at most that of a few roundings of |x|, or of 1 in the slope. Beyond the dense values all
// orders of magnitude, to the largest.
TEST(Activation, InFp32IsAsGoodAsFp32) {
  const at::Tensor huge = at::pow(2.0, at::arange(-126, 128, 0.25, at::kDouble)).to(at::kFloat);
  const at::Tensor x = at::cat({at::arange(-20, 20, 1e-4, at::kFloat), huge, -huge, at::zeros({1})});
  const at::Tensor exact = x.to(at::kDouble), one = at::ones_like(x);
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
    const ActivationBackward expected = portable::activate_backward(at::ones_like(exact), exact, activation);
    const ActivationBackward ours = activate_backward(one, x, activation);
    const at::Tensor value = (ours.output.to(at::kDouble) - expected.output).abs();
    const at::Tensor slope = (ours.grad.to(at::kDouble) - expected.grad).abs();
    EXPECT_TRUE((value <= exact.abs() * 2e-7).all().item<bool>()) << static_cast<int>(activation);
    EXPECT_LE(slope.max().item<double>(), 2.5e-7) << static_cast<int>(activation);
  }
}

// As in libtorch; max(0, NaN) would be 0.
TEST(Activation, OfNaNIsNaN) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::full({1, 40}, NAN, type);
    for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
      EXPECT_TRUE(activate(x, activation).isnan().all().item<bool>());
      EXPECT_TRUE(gated_activate(x, activation).isnan().all().item<bool>());
    }
  }
}

TEST(Portable, CrossEntropy) {
  at::manual_seed(8);
  const auto kernel = [](auto&& loss) { return [=](Tensors in) { return Tensors{loss(in[0], in[1], 0.3), in[0]}; }; };
  for (const int64_t width : {1, 11, 64}) {
    expect_both({at::randn({6, width}) * 5, at::randint(width, {6}, at::kLong)}, kernel(cross_entropy_in_place),
                kernel(portable::cross_entropy_in_place));
  }
}

TEST(CrossEntropy, ATargetThatIsNoClassIsRefused) {
  for (const int64_t target : {-1, 11}) {
    at::Tensor logits = at::randn({2, 11});
    EXPECT_THROW(cross_entropy_in_place(logits, at::full({2}, target, at::kLong), 1), c10::Error);
  }
}

TEST(Meta, Linear) {
  expect_same_on_meta({at::randn({3, 5, 4}), at::randn({6, 4}), at::randn({6}), at::randn({3, 5, 6})},
                      [](const Tensors& in) {
                        const auto wide = in[0].options().dtype(at::kFloat);
                        at::Tensor weight = at::zeros({6, 4}, wide), bias = at::zeros({6}, wide);
                        linear_backward_weight(in[0], in[3], weight);
                        linear_backward_bias(in[3], bias);
                        return Tensors{gyre::linear(in[0], in[1], in[2]), gyre::linear(in[0], in[1], {}),
                                       linear_backward_input(in[3], in[1]), weight, bias};
                      });
}

TEST(Meta, Activations) {
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
    expect_same_on_meta({at::randn({3, 8}), at::randn({3, 8}), at::randn({3, 4})}, [=](const Tensors& in) {
      const auto plain = activate_backward(in[1], in[0], activation);
      const auto gated = gated_activate_backward(in[2], in[0], activation);
      return Tensors{activate(in[0], activation),       plain.grad, plain.output,
                     gated_activate(in[0], activation), gated.grad, gated.output};
    });
  }
}

TEST(Meta, Attention) {
  const AttentionHeads heads{4, 2};
  for (const int64_t context : {5, 200}) {  // one block of queries, and two
    expect_same_on_meta({at::randn({3, context, 8 * 6}), at::randn({3, context, 4 * 6})}, [=](const Tensors& in) {
      HeadTensors of = split_heads(in[0], heads);
      const RotaryAngles angles = RotaryPositions(context, rotary_frequencies(6, 1e4)).angles(0, context, in[0]);
      rotate_in_place(of.query, angles);
      rotate_back_in_place(of.key, angles);
      const at::Tensor attended = attention(of, true).output;
      return Tensors{of.query, of.key, of.value, attended, attention_backward(in[1], of, {}, true)};
    });
  }
}

TEST(Meta, CrossEntropy) {
  expect_same_on_meta({at::randn({6, 11}), at::randint(11, {6}, at::kLong)}, [](Tensors in) {
    const at::Tensor loss = cross_entropy_in_place(in[0], in[1], 0.5);
    return Tensors{loss, in[0]};
  });
}

}  // namespace
}  // namespace gyre
