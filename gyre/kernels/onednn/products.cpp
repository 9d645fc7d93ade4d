#include "gyre/kernels/onednn/products.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <array>
#include <compare>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/onednn/api.h"
#include "gyre/kernels/portable.h"

namespace gyre::onednn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kBf16 = memory::data_type::bf16;
constexpr auto kFp32 = memory::data_type::f32;
constexpr size_t kMostPrimitives = 512;  // of a thread; some models have rows in numbers that differ every time

bool cpu_has(dnnl::cpu_isa wanted) {
  const auto all = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), bits = static_cast<unsigned>(wanted);
  return (all & bits) == bits;
}

// Asked once. ONEDNN_MAX_CPU_ISA can take it away.
bool cpu_has_bf16() {
  static const bool has = cpu_has(dnnl::cpu_isa::avx512_core_bf16);
  return has;
}

enum class Kind { Forward, BackwardInput, BackwardWeight };

// What a primitive is made for. Threads decide how it cuts its work, so its bits.
struct Key {
  Kind kind;
  int64_t rows, in, out;
  bool bias;
  int threads;
  auto operator<=>(const Key&) const = default;
};

struct Primitive {
  dnnl::primitive primitive;
  std::vector<std::pair<int, memory::desc>> arguments;  // the scratch memory's last
};

// A thread's: primitives are made where they run, and nobody waits for a lock. What is dear about them, their code, is
// in oneDNN's own cache, which all threads share.
struct Maker {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Primitive> primitives;

  const Primitive& get(const Key& key) {
    const auto found = primitives.find(key);
    if (found != primitives.end()) return found->second;
    if (primitives.size() >= kMostPrimitives) primitives.clear();
    return primitives.emplace(key, make(key)).first->second;
  }

  Primitive make(const Key& key) const {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    // The transposes of weights are taken where they lie.
    const memory::desc x({key.rows, key.in}, kBf16, Tag::ab), y({key.rows, key.out}, kBf16, Tag::ab);
    switch (key.kind) {
      case Kind::Forward: {
        const memory::desc weights({key.in, key.out}, kBf16, Tag::ba);
        const memory::desc bias = key.bias ? memory::desc({1, key.out}, kBf16, Tag::ab) : memory::desc();
        const auto desc = matmul(engine, x, weights, bias, y, attributes);
        return {dnnl::matmul(desc),
                {{DNNL_ARG_SRC, x},
                 {DNNL_ARG_WEIGHTS, weights},
                 {DNNL_ARG_DST, y},
                 {DNNL_ARG_BIAS, bias},
                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}};
      }
      case Kind::BackwardInput: {
        const memory::desc weights({key.out, key.in}, kBf16, Tag::ab);
        const auto desc = matmul(engine, y, weights, {}, x, attributes);
        return {dnnl::matmul(desc),
                {{DNNL_ARG_SRC, y},
                 {DNNL_ARG_WEIGHTS, weights},
                 {DNNL_ARG_DST, x},
                 {DNNL_ARG_BIAS, {}},
                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}};
      }
      case Kind::BackwardWeight:
        break;
    }
    // The inner product's own primitive is faster here than a product of transposes, and writes fp32.
    const memory::desc any({key.out, key.in}, kBf16, Tag::any), gradient({key.out, key.in}, kFp32, Tag::ab);
    const auto desc = linear_backward_weights(engine, x, gradient, y, linear_forward(engine, x, any, y), attributes);
    return {dnnl::inner_product_backward_weights(desc),
            {{DNNL_ARG_SRC, x},
             {DNNL_ARG_DIFF_DST, y},
             {DNNL_ARG_DIFF_WEIGHTS, gradient},
             {DNNL_ARG_BIAS, {}},
             {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}};
  }

  // In the order of the primitive's arguments; one that it has not is undefined.
  void run(const Key& key, std::array<at::Tensor, 4> tensors) {
    const Primitive& of = get(key);
    const at::Tensor scratch = at::empty({static_cast<int64_t>(of.arguments.back().second.get_size())}, at::kByte);
    std::unordered_map<int, memory> arguments;
    for (size_t i = 0; i < of.arguments.size(); ++i) {
      const at::Tensor& tensor = i < tensors.size() ? tensors[i] : scratch;
      const auto& [argument, desc] = of.arguments[i];
      if (tensor.defined()) arguments.emplace(argument, memory(desc, engine, tensor.data_ptr()));
    }
    of.primitive.execute(stream, arguments);
    stream.wait();
  }
};
thread_local Maker maker;

bool serves(const at::Tensor& x, const at::Tensor& matrix) {
  return x.is_cpu() && x.scalar_type() == at::kBFloat16 && x.numel() > 0 && cpu::is_plain(matrix, at::kBFloat16) &&
         cpu_has_bf16();
}

at::Tensor contiguous_rows(const at::Tensor& x) {
  return portable::rows_of(x).contiguous();
}

// Of `rows`' shape but for the last size.
at::Tensor result_like(const at::Tensor& x, int64_t size) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = size;
  return at::empty(sizes, x.options());
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!serves(x, weight) || (bias.defined() && !cpu::is_plain(bias, at::kBFloat16))) return {};
  const at::Tensor rows = contiguous_rows(x);
  at::Tensor result = result_like(x, weight.size(0));
  maker.run({Kind::Forward, rows.size(0), rows.size(1), weight.size(0), bias.defined(), at::get_num_threads()},
            {rows, weight, result, bias});
  return result;
}

at::Tensor linear_backward_input(const at::Tensor& grad, const at::Tensor& weight) {
  if (!serves(grad, weight)) return {};
  const at::Tensor rows = contiguous_rows(grad);
  at::Tensor result = result_like(grad, weight.size(1));
  maker.run({Kind::BackwardInput, rows.size(0), weight.size(1), weight.size(0), false, at::get_num_threads()},
            {rows, weight, result, {}});
  return result;
}

bool linear_backward_weight(const at::Tensor& x, const at::Tensor& grad, at::Tensor& weight_gradient) {
  if (!x.is_cpu() || !cpu::is_plain(weight_gradient, at::kFloat)) return false;
  const at::Tensor x_rows = contiguous_rows(x);
  if (!serves(grad, x_rows)) return false;
  const at::Tensor grad_rows = contiguous_rows(grad);
  const at::Tensor product = at::empty(weight_gradient.sizes(), weight_gradient.options());
  maker.run({Kind::BackwardWeight, x_rows.size(0), x_rows.size(1), grad_rows.size(1), false, at::get_num_threads()},
            {x_rows, grad_rows, product, {}});
  weight_gradient.add_(product);
  return true;
}

std::string description() {
  const dnnl_version_t* version = dnnl_version();
  if (!cpu_has_bf16()) return "libtorch (this CPU has no instructions for bf16, or oneDNN is told not to use them)";
  return fmt::format("oneDNN {}.{}.{} ({})", version->major, version->minor, version->patch,
                     cpu_has(dnnl::cpu_isa::avx512_core_amx) ? "AMX" : "AVX-512");
}

}  // namespace gyre::onednn
