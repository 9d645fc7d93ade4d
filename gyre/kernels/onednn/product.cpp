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

using bf16::Factor;
using bf16::Sizes;
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

// How a factor lies.
struct Layout {
  int64_t stride;
  bool transposed;
  auto operator<=>(const Layout&) const = default;
};
Layout layout(const Factor& of) {
  return {of.stride, of.transposed};
}

enum class Way {
  Matmul,
  BackwardWeights,  // the inner product's primitive
};
enum class Result {
  Rounded,  // bf16
  Biased,   // bf16, of sums with a bias
  Wide,     // fp32
  Added,    // to what is there, in fp32
};

// What a primitive is made for.
struct Key {
  Way way;
  int64_t m, n, k;
  Layout a, b;
  Result result;
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
    return of.way == Way::Matmul ? made_by_matmul(of) : made_by_backward_weights(of);
  }

  // Transposes of matrices are taken where they lie.
  static memory::desc described(int64_t rows, int64_t columns, const Layout& of) {
    return {{rows, columns}, kBf16, of.transposed ? memory::dims{1, of.stride} : memory::dims{of.stride, 1}};
  }

  Primitive made_by_matmul(const Key& of) const {
    const bool wide = of.result == Result::Wide || of.result == Result::Added;
    const memory::desc a = described(of.m, of.k, of.a), b = described(of.k, of.n, of.b);
    const memory::desc c({of.m, of.n}, wide ? kFp32 : kBf16, Tag::ab);
    const memory::desc bias = of.result == Result::Biased ? memory::desc({1, of.n}, kBf16, Tag::ab) : memory::desc();
    const auto desc = matmul(engine_, a, b, bias, c, attributes(of.result == Result::Added));
    return {engine_, dnnl::matmul(desc), kOfMatmul, {a, b, c, bias, desc.scratchpad_desc()}};
  }

  Primitive made_by_backward_weights(const Key& of) const {
    const memory::desc y({of.k, of.m}, kBf16, Tag::ab), x({of.k, of.n}, kBf16, Tag::ab);
    const memory::desc any({of.m, of.n}, kBf16, Tag::any), gradient({of.m, of.n}, kFp32, Tag::ab);
    const auto desc =
        linear_backward_weights(engine_, x, gradient, y, linear_forward(engine_, x, any, y), attributes(false));
    return {engine_,
            dnnl::inner_product_backward_weights(desc),
            kOfBackwardWeights,
            {y, x, gradient, {}, desc.scratchpad_desc()}};
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

void multiply(const Sizes& sizes, const Factor& a, const Factor& b, const uint16_t* bias, uint16_t* c) {
  const Result result = bias == nullptr ? Result::Rounded : Result::Biased;
  maker.run({Way::Matmul, sizes.m, sizes.n, sizes.k, layout(a), layout(b), result, at::get_num_threads()},
            {pointer(a.data), pointer(b.data), c, pointer(bias)});
}

void multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool adds, float* c) {
  const Result result = adds ? Result::Added : Result::Wide;
  maker.run({Way::Matmul, sizes.m, sizes.n, sizes.k, layout(a), layout(b), result, at::get_num_threads()},
            {pointer(a.data), pointer(b.data), c, nullptr});
}

void multiply_long(const Sizes& sizes, const uint16_t* a, const uint16_t* b, bool adds, float* c) {
  const Key key{Way::BackwardWeights, sizes.m, sizes.n, sizes.k, {}, {}, Result::Wide, at::get_num_threads()};
  if (!adds) return maker.run(key, {pointer(a), pointer(b), c, nullptr});
  // The primitive cannot add.
  const at::Tensor sum = at::empty({sizes.m, sizes.n}, at::kFloat);
  maker.run(key, {pointer(a), pointer(b), sum.data_ptr(), nullptr});
  at::from_blob(c, sum.sizes(), at::kFloat).add_(sum);
}

}  // namespace gyre::onednn
