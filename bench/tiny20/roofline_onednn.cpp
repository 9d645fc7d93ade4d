// The roofline with oneDNN. For every matrix product several primitives and layouts, also those that oneDNN chooses
// (`any`), are tried, and the fastest is used. All matrices have the layouts that the primitives want, so nothing is
// packed or converted while measuring.
#include <ATen/ATen.h>

#include <barrier>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gyre/core/timing.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/onednn/api.h"
#include "gyre/tensors/thread_count.h"
#include "tiny20/roofline.h"

namespace gyre::bench {
namespace {

using Clock = std::chrono::steady_clock;
using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kBf16 = memory::data_type::bf16;
constexpr auto kFp32 = memory::data_type::f32;
constexpr int kRepeats = 3;

// One primitive with memory of its own. All elements are one, so that neither denormals nor overflows slow it down.
class Product {
 public:
  Product(const dnnl::engine& engine, dnnl::primitive primitive,
          const std::vector<std::pair<int, memory::desc>>& operands)
      : primitive_(std::move(primitive)) {
    for (const auto& [argument, desc] : operands) {
      memory buffer(desc, engine);
      const size_t bytes = desc.get_size();
      at::Tensor ones = onednn::type_of(desc) == kBf16 ? at::ones({static_cast<int64_t>(bytes / 2)}, at::kBFloat16)
                                                       : at::ones({static_cast<int64_t>(bytes / 4)}, at::kFloat);
      buffer.set_data_handle(ones.data_ptr());
      owned_.push_back(std::move(ones));
      arguments_.emplace(argument, std::move(buffer));
    }
  }
  void run(dnnl::stream& stream) const { primitive_.execute(stream, arguments_); }

 private:
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
  std::vector<at::Tensor> owned_;
};
using Make = std::function<Product(const dnnl::engine&)>;

// What is multiplied is of one type; a product's result may be wider.
using Type = memory::data_type;

// a (m, k) times b (k, n); a batch of such products if `batch` is not 0.
Make product_of(int64_t batch, int64_t m, int64_t n, int64_t k, Type type, Type result, Tag a, Tag b, Tag c) {
  return [=](const dnnl::engine& engine) {
    const auto dims = [batch](int64_t rows, int64_t columns) {
      return batch > 0 ? memory::dims{batch, rows, columns} : memory::dims{rows, columns};
    };
    const auto desc = onednn::matmul(engine, memory::desc(dims(m, k), type, a), memory::desc(dims(k, n), type, b),
                                     memory::desc(), memory::desc(dims(m, n), result, c));
    return Product(
        engine, dnnl::matmul(desc),
        {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DST, desc.dst_desc()}});
  };
}

struct LinearDescs {
  memory::desc x, w, y;
};
LinearDescs any_of(int64_t rows, int64_t in, int64_t out, Type type, Type weights, Tag layout_of_w) {
  return {memory::desc({rows, in}, type, Tag::any), memory::desc({out, in}, weights, layout_of_w),
          memory::desc({rows, out}, type, Tag::any)};
}

Make inner_forward(int64_t rows, int64_t in, int64_t out, Type type) {
  return [=](const dnnl::engine& engine) {
    const LinearDescs d = any_of(rows, in, out, type, type, Tag::any);
    const auto desc = onednn::linear_forward(engine, d.x, d.w, d.y);
    return Product(
        engine, dnnl::inner_product_forward(desc),
        {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DST, desc.dst_desc()}});
  };
}
Make inner_data(int64_t rows, int64_t in, int64_t out, Type type) {
  return [=](const dnnl::engine& engine) {
    const LinearDescs d = any_of(rows, in, out, type, type, Tag::any);
    const auto desc =
        onednn::linear_backward_data(engine, d.x, d.w, d.y, onednn::linear_forward(engine, d.x, d.w, d.y));
    return Product(engine, dnnl::inner_product_backward_data(desc),
                   {{DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
                    {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                    {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()}});
  };
}
Make inner_weights(int64_t rows, int64_t in, int64_t out, Type type, Tag layout) {
  return [=](const dnnl::engine& engine) {
    const LinearDescs d = any_of(rows, in, out, type, kFp32, layout);
    const LinearDescs forward = any_of(rows, in, out, type, type, Tag::any);
    const auto desc = onednn::linear_backward_weights(engine, d.x, d.w, d.y,
                                                      onednn::linear_forward(engine, forward.x, forward.w, forward.y));
    return Product(engine, dnnl::inner_product_backward_weights(desc),
                   {{DNNL_ARG_SRC, desc.src_desc()},
                    {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()},
                    {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()}});
  };
}

// The fastest of several ways to compute one product.
Make fastest(const std::vector<Make>& ways, const dnnl::engine& engine, dnnl::stream& stream) {
  Make best;
  double least = std::numeric_limits<double>::max();
  for (const Make& make : ways) {
    const Product product = make(engine);
    product.run(stream);
    for (int i = 0; i < kRepeats; ++i) {
      const auto begin = Clock::now();
      product.run(stream);
      const double seconds = seconds_since(begin);
      if (seconds < least) {
        least = seconds;
        best = make;
      }
    }
  }
  return best;
}

// Forward and both halves of the backward of y = x W^T.
std::vector<Make> linear_products(int64_t rows, int64_t in, int64_t out, Type type, const dnnl::engine& engine,
                                  dnnl::stream& stream) {
  const auto product = [&](int64_t m, int64_t n, int64_t k, Type result, Tag a, Tag b, Tag c) {
    return product_of(0, m, n, k, type, result, a, b, c);
  };
  return {fastest({product(rows, out, in, type, Tag::any, Tag::any, Tag::any), inner_forward(rows, in, out, type)},
                  engine, stream),
          fastest({product(rows, in, out, type, Tag::any, Tag::any, Tag::any), inner_data(rows, in, out, type)}, engine,
                  stream),
          fastest({product(out, in, rows, kFp32, Tag::any, Tag::any, Tag::any),
                   product(out, in, rows, kFp32, Tag::ba, Tag::ab, Tag::ab),
                   inner_weights(rows, in, out, type, Tag::any), inner_weights(rows, in, out, type, Tag::ab)},
                  engine, stream)};
}

// The products of attention, without a causal mask: scores, output, and the gradients of probabilities, values, queries
// and keys.
std::vector<Make> attention_products(const Shape& s, Type type, const dnnl::engine& engine, dnnl::stream& stream) {
  const int64_t batch = s.microbatch * s.heads, size = s.width / s.heads;
  const auto best = [&](int64_t m, int64_t n, int64_t k) {
    return fastest({product_of(batch, m, n, k, type, type, Tag::abc, Tag::abc, Tag::abc),
                    product_of(batch, m, n, k, type, type, Tag::abc, Tag::acb, Tag::abc),
                    product_of(batch, m, n, k, type, type, Tag::any, Tag::any, Tag::any)},
                   engine, stream);
  };
  const Make square = best(s.context, s.context, size), narrow = best(s.context, size, s.context);
  return {square, narrow, square, narrow, narrow, narrow};
}

// copy: of the weights in bf16; null if they are used in fp32.
GYRE_CPU_KERNEL void adamw_pass(float* __restrict w, float* __restrict m, float* __restrict v,
                                const float* __restrict g, c10::BFloat16* __restrict copy, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    m[i] = 0.9f * m[i] + 0.1f * g[i];
    v[i] = 0.99f * v[i] + 0.01f * g[i] * g[i];
    w[i] = 0.999f * w[i] - 1e-4f * m[i] / (std::sqrt(v[i]) + 1e-8f);
    if (copy != nullptr) cpu::store(copy + i, w[i]);
  }
}

// One worker's products and tensors.
struct Share {
  std::vector<Product> products;  // of a whole microbatch
  at::Tensor weights, first, second, gradient, copy;
};

class OneDnnRoofline final : public Roofline {
 public:
  OneDnnRoofline(const Shape& shape, int64_t parameters) : shape_(shape), engine_(dnnl::engine::kind::cpu, 0) {
    use_threads(1);
    dnnl::stream stream(engine_);
    const Type type = shape.fp32 ? kFp32 : kBf16;
    std::vector<std::pair<std::vector<Make>, int64_t>> all;  // products, and how often each occurs
    for (const auto& [in, out] : shape.matrices()) {
      all.emplace_back(linear_products(shape.rows(), in, out, type, engine_, stream), shape.layers);
    }
    all.emplace_back(attention_products(shape, type, engine_, stream), shape.layers);
    all.emplace_back(linear_products(shape.rows(), shape.width, shape.vocabulary, type, engine_, stream), 1);
    for (int worker = 0; worker < shape.workers; ++worker) {
      Share& share = shares_.emplace_back();
      for (const auto& [products, times] : all) {
        for (int64_t i = 0; i < times; ++i) {
          for (const Make& make : products) share.products.push_back(make(engine_));
        }
      }
      const int64_t count = parameters / shape.workers;
      for (at::Tensor* tensor : {&share.weights, &share.first, &share.second, &share.gradient})
        *tensor = at::ones({count});
      if (!shape.fp32) share.copy = at::ones({count}, at::kBFloat16);
    }
  }

  Times measure() override {
    Times times;
    times.microbatch = together([](Share& share, dnnl::stream& stream) {
                         for (const Product& product : share.products) product.run(stream);
                       }) *
                       (1.0 / shape_.workers);
    times.update = together([](Share& share, dnnl::stream&) {
      adamw_pass(share.weights.data_ptr<float>(), share.first.data_ptr<float>(), share.second.data_ptr<float>(),
                 share.gradient.data_ptr<float>(),
                 share.copy.defined() ? share.copy.data_ptr<c10::BFloat16>() : nullptr, share.weights.numel());
    });
    return times;
  }

 private:
  // Mean time of the work, done by all workers at the same time, after one pass to warm up.
  Seconds together(const std::function<void(Share&, dnnl::stream&)>& work) {
    std::barrier start(shape_.workers + 1);
    std::vector<std::jthread> threads;
    for (Share& share : shares_) {
      threads.emplace_back([&] {
        use_threads(1);
        dnnl::stream stream(engine_);
        work(share, stream);
        start.arrive_and_wait();
        for (int i = 0; i < kRepeats; ++i) work(share, stream);
      });
    }
    start.arrive_and_wait();
    const auto begin = Clock::now();
    const double processor = processor_seconds();
    threads.clear();
    return Seconds{seconds_since(begin), processor_seconds() - processor} * (1.0 / kRepeats);
  }

  Shape shape_;
  dnnl::engine engine_;
  std::vector<Share> shares_;
};

}  // namespace

std::unique_ptr<Roofline> make_roofline(const Shape& shape, int64_t parameters) {
  try {
    return std::make_unique<OneDnnRoofline>(shape, parameters);
  } catch (const dnnl::error&) {  // no product of bf16 without AVX-512
    return nullptr;
  }
}

}  // namespace gyre::bench
