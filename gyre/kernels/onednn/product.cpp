#include "gyre/kernels/onednn/product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <unordered_map>

#include "gyre/kernels/onednn/api.h"

namespace gyre::onednn {
namespace {

using bf16::Kind;
using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kBf16 = memory::data_type::bf16;
constexpr auto kFp32 = memory::data_type::f32;
constexpr size_t kMostPrimitives = 1024;  // of a thread; some models have rows in numbers that differ every time

bool cpu_has(dnnl::cpu_isa wanted) {
  const auto all = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), bits = static_cast<unsigned>(wanted);
  return (all & bits) == bits;
}

// First, second, result, bias, and memory to work in. A description with no type stands for nothing.
constexpr size_t kOperands = 5, kScratch = 4;
using Descriptions = std::array<memory::desc, kOperands>;
using Names = std::array<int, kOperands>;
constexpr Names kOfMatmul = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS, DNNL_ARG_SCRATCHPAD};
constexpr Names kOfBackwardWeights = {DNNL_ARG_DIFF_DST, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS,
                                      DNNL_ARG_SCRATCHPAD};

struct Primitive {
  dnnl::primitive primitive;
  std::array<memory, kOperands> operands;  // the arguments' own, whose pointers are set for every run
  std::unordered_map<int, memory> arguments;
  int64_t scratch_bytes = 0;

  Primitive(const dnnl::engine& engine, dnnl::primitive made, const Names& names, const Descriptions& descriptions)
      : primitive(std::move(made)), scratch_bytes(static_cast<int64_t>(descriptions[kScratch].get_size())) {
    for (size_t i = 0; i < kOperands; ++i) {
      if (i != kScratch && is_nothing(descriptions[i])) continue;
      operands[i] = memory(descriptions[i], engine, nullptr);
      arguments.emplace(names[i], operands[i]);
    }
  }
};

// What a primitive is made for.
struct Key {
  Kind kind;
  int64_t rows, in, out;
  bool bias;
  int threads;  // they decide how it cuts its work, so its bits
  auto operator<=>(const Key&) const = default;
};

// A thread's: primitives are made where they run, and nobody waits for a lock. What is dear about them, their code, is
// in oneDNN's own cache, which all threads share.
class Maker {
 public:
  void run(const Key& product, const std::array<void*, kScratch>& pointers) {
    Primitive& of = get(product);
    for (size_t i = 0; i < kScratch; ++i) {
      if (of.operands[i]) of.operands[i].set_data_handle(pointers[i]);
    }
    of.operands[kScratch].set_data_handle(scratch(of.scratch_bytes));
    of.primitive.execute(stream_, of.arguments);
    stream_.wait();
  }

 private:
  Primitive& get(const Key& product) {
    const auto found = primitives_.find(product);
    if (found != primitives_.end()) return found->second;
    if (primitives_.size() >= kMostPrimitives) primitives_.clear();
    return primitives_.emplace(product, make(product)).first->second;
  }

  Primitive make(const Key& of) const {
    // The transposes of matrices are taken where they lie.
    const memory::desc x({of.rows, of.in}, kBf16, Tag::ab), y({of.rows, of.out}, kBf16, Tag::ab);
    switch (of.kind) {
      case Kind::Forward:
        return product(x, memory::desc({of.in, of.out}, kBf16, Tag::ba), y,
                       of.bias ? memory::desc({1, of.out}, kBf16, Tag::ab) : memory::desc());
      case Kind::BackwardInput:
        return product(y, memory::desc({of.out, of.in}, kBf16, Tag::ab), x);
      case Kind::Outer:
      case Kind::AddedOuter:
        return product(memory::desc({of.out, of.rows}, kBf16, Tag::ba), x,
                       memory::desc({of.out, of.in}, kFp32, Tag::ab), {}, of.kind == Kind::AddedOuter);
      case Kind::BackwardWeight:
      case Kind::AddedWeight:
        break;
    }
    // The inner product's own primitive is faster here than a product of transposes.
    const memory::desc any({of.out, of.in}, kBf16, Tag::any), gradient({of.out, of.in}, kFp32, Tag::ab);
    const auto desc =
        linear_backward_weights(engine_, x, gradient, y, linear_forward(engine_, x, any, y), attributes(false));
    return {engine_,
            dnnl::inner_product_backward_weights(desc),
            kOfBackwardWeights,
            {y, x, gradient, {}, desc.scratchpad_desc()}};
  }

  Primitive product(const memory::desc& first, const memory::desc& second, const memory::desc& result,
                    const memory::desc& bias = {}, bool adds = false) const {
    const auto desc = matmul(engine_, first, second, bias, result, attributes(adds));
    return {engine_, dnnl::matmul(desc), kOfMatmul, {first, second, result, bias, desc.scratchpad_desc()}};
  }

  static dnnl::primitive_attr attributes(bool adds) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (!adds) return attributes;
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
    return attributes;
  }

  // The memory of the largest primitive that has run.
  void* scratch(int64_t bytes) {
    if (!scratch_.defined() || scratch_.numel() < bytes) scratch_ = at::empty({bytes}, at::kByte);
    return scratch_.data_ptr();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<Key, Primitive> primitives_;
  at::Tensor scratch_;
};
thread_local Maker maker;

// oneDNN takes pointers to what it only reads as it takes all others.
void* pointer(const void* to) {
  return const_cast<void*>(to);
}

}  // namespace

bool cpu_serves() {
  static const bool has = cpu_has(dnnl::cpu_isa::avx512_core_bf16);
  return has;
}

bool allows_tiles() {
  return cpu_has(dnnl::cpu_isa::avx512_core_amx);
}

std::string description() {
  const dnnl_version_t* version = dnnl_version();
  if (!cpu_serves()) return "libtorch (this CPU has no instructions for bf16, or oneDNN is told not to use them)";
  return fmt::format("oneDNN {}.{}.{} ({})", version->major, version->minor, version->patch,
                     allows_tiles() ? "AMX" : "AVX-512");
}

void run(const bf16::Product& product, const void* first, const void* second, void* result, const void* bias) {
  const Key key{product.kind, product.rows, product.in, product.out, product.bias, at::get_num_threads()};
  if (product.kind != Kind::AddedWeight)
    return maker.run(key, {pointer(first), pointer(second), result, pointer(bias)});
  // The primitive that is fast here cannot add.
  const at::Tensor sum = at::empty({product.out, product.in}, at::kFloat);
  maker.run(key, {pointer(first), pointer(second), sum.data_ptr(), nullptr});
  at::from_blob(result, sum.sizes(), at::kFloat).add_(sum);
}

}  // namespace gyre::onednn
