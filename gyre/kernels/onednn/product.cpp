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
#ifdef __x86_64__
constexpr const char* kOtherwise = "in fp32";  // see kernels/matrix_product.h
#else
constexpr const char* kOtherwise = "libtorch";
#endif
constexpr size_t kMaxPrimitives = 1024;  // cached per thread; in some models the number of rows differs every time

bool cpu_has(dnnl::cpu_isa wanted) {
  const auto all = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), bits = static_cast<unsigned>(wanted);
  return (all & bits) == bits;
}

// Operands: first factor, second factor, result, bias, scratchpad. An empty description means that there is none.
constexpr size_t kOperands = 5, kScratch = 4;
using Descriptions = std::array<memory::desc, kOperands>;
using Names = std::array<int, kOperands>;
constexpr Names kMatmulNames = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS, DNNL_ARG_SCRATCHPAD};
constexpr int kNoName = 0;  // of an operand that is never there
constexpr Names kBackwardWeightsNames = {DNNL_ARG_DIFF_DST, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, kNoName,
                                         DNNL_ARG_SCRATCHPAD};

struct Primitive {
  dnnl::primitive primitive;
  std::array<memory, kOperands> operands;  // share their handles with `arguments`; pointers are set before every run
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

// A factor's layout in memory; see FactorOf.
struct Layout {
  int64_t stride;
  bool transposed;
  auto operator<=>(const Layout&) const = default;
};
template <typename Element>
Layout layout(const FactorOf<Element>& factor) {
  return {factor.stride, factor.transposed};
}

enum class Way {
  Matmul,
  BackwardWeights,  // oneDNN's inner_product_backward_weights
};
enum class Result {
  Rounded,  // in the type of the factors
  Biased,   // the same, with a bias in that type
  Wide,     // fp32
  Added,    // fp32, added to the result's old contents
};

// The product that a primitive computes.
struct Key {
  Way way;
  memory::data_type type;  // of the factors
  int64_t m, n, k;
  Layout a, b;
  Result result;
  int threads;  // determines how the work is divided, and so the result's bits
  auto operator<=>(const Key&) const = default;
};

// Creates, caches and runs primitives. Each thread has its own, so that nobody waits for a lock. The expensive part of
// a primitive, the generated code, is in oneDNN's own cache, which all threads share.
class Maker {
 public:
  void run(const Key& product, const std::array<void*, kScratch>& pointers) {
    Primitive& cached = get(product);
    for (size_t i = 0; i < kScratch; ++i) {
      if (cached.operands[i]) cached.operands[i].set_data_handle(pointers[i]);
    }
    cached.operands[kScratch].set_data_handle(scratch(cached.scratch_bytes));
    cached.primitive.execute(stream_, cached.arguments);
    stream_.wait();
  }

 private:
  Primitive& get(const Key& product) {
    const auto found = primitives_.find(product);
    if (found != primitives_.end()) return found->second;
    if (primitives_.size() >= kMaxPrimitives) primitives_.clear();
    return primitives_.emplace(product, make(product)).first->second;
  }

  Primitive make(const Key& key) const {
    return key.way == Way::Matmul ? make_matmul(key) : make_backward_weights(key);
  }

  // A factor (rows, columns); a transposed one is read in place.
  static memory::desc described(int64_t rows, int64_t columns, memory::data_type type, const Layout& layout) {
    return {{rows, columns}, type, layout.transposed ? memory::dims{1, layout.stride} : memory::dims{layout.stride, 1}};
  }

  Primitive make_matmul(const Key& key) const {
    const bool wide = key.result == Result::Wide || key.result == Result::Added;
    const memory::desc a = described(key.m, key.k, key.type, key.a), b = described(key.k, key.n, key.type, key.b);
    const memory::desc c({key.m, key.n}, wide ? kFp32 : key.type, Tag::ab);
    const memory::desc bias =
        key.result == Result::Biased ? memory::desc({1, key.n}, key.type, Tag::ab) : memory::desc();
    const auto desc = matmul(engine_, a, b, bias, c, attributes(key.result == Result::Added));
    return {engine_, dnnl::matmul(desc), kMatmulNames, {a, b, c, bias, desc.scratchpad_desc()}};
  }

  Primitive make_backward_weights(const Key& key) const {
    const memory::desc y({key.k, key.m}, kBf16, Tag::ab), x({key.k, key.n}, kBf16, Tag::ab);
    const memory::desc any({key.m, key.n}, kBf16, Tag::any), gradient({key.m, key.n}, kFp32, Tag::ab);
    const auto desc =
        linear_backward_weights(engine_, x, gradient, y, linear_forward(engine_, x, any, y), attributes(false));
    return {engine_,
            dnnl::inner_product_backward_weights(desc),
            kBackwardWeightsNames,
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

  // Scratch memory, as large as the largest primitive run so far needs.
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

// On how many threads oneDNN computes here: on one within a loop whose parts run at the same time.
int threads_here() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

std::string name_with(const char* instructions) {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} ({})", version->major, version->minor, version->patch, instructions);
}

// oneDNN takes non-const pointers also for operands that it only reads.
void* pointer(const void* to) {
  return const_cast<void*>(to);
}

}  // namespace

bool cpu_serves() {
  static const bool has = cpu_has(dnnl::cpu_isa::avx512_core_bf16);
  return has;
}

bool serves_fp32() {
  static const bool serves = cpu_has(dnnl::cpu_isa::avx512_core);
  return serves;
}

bool allows_tiles() {
  return cpu_has(dnnl::cpu_isa::avx512_core_amx);
}

bool is_limited() {
#ifdef __x86_64__
  return (__builtin_cpu_supports("avx512bw") && !cpu_has(dnnl::cpu_isa::avx512_core)) ||
         (__builtin_cpu_supports("avx512bf16") && !cpu_has(dnnl::cpu_isa::avx512_core_bf16));
#else
  return false;
#endif
}

std::string description() {
  if (cpu_serves()) return name_with(allows_tiles() ? "AMX" : "AVX-512");
  return fmt::format("{} (this CPU has no instructions for bf16, or oneDNN is told not to use them)", kOtherwise);
}

std::string fp32_description() {
  return serves_fp32() ? name_with("AVX-512") : "libtorch";
}

void multiply(const Sizes& sizes, const Factor& a, const Factor& b, const uint16_t* bias, uint16_t* c) {
  const Result result = bias == nullptr ? Result::Rounded : Result::Biased;
  maker.run({Way::Matmul, kBf16, sizes.m, sizes.n, sizes.k, layout(a), layout(b), result, threads_here()},
            {pointer(a.data), pointer(b.data), c, pointer(bias)});
}

void multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool adds, float* c) {
  const Result result = adds ? Result::Added : Result::Wide;
  maker.run({Way::Matmul, kBf16, sizes.m, sizes.n, sizes.k, layout(a), layout(b), result, threads_here()},
            {pointer(a.data), pointer(b.data), c, nullptr});
}

void multiply(const ProductSizes& sizes, const FactorOf<float>& a, const FactorOf<float>& b, const float* bias,
              bool adds, float* c) {
  const Result result = adds ? Result::Added : bias == nullptr ? Result::Rounded : Result::Biased;
  maker.run({Way::Matmul, kFp32, sizes.m, sizes.n, sizes.k, layout(a), layout(b), result, threads_here()},
            {pointer(a.data), pointer(b.data), c, pointer(bias)});
}

void multiply_long(const Sizes& sizes, const uint16_t* a, const uint16_t* b, bool adds, float* c) {
  const Key key{Way::BackwardWeights, kBf16, sizes.m, sizes.n, sizes.k, {}, {}, Result::Wide, threads_here()};
  if (!adds) return maker.run(key, {pointer(a), pointer(b), c, nullptr});
  // The primitive cannot add to the result.
  const at::Tensor sum = at::empty({sizes.m, sizes.n}, at::kFloat);
  maker.run(key, {pointer(a), pointer(b), sum.data_ptr(), nullptr});
  at::from_blob(c, sum.sizes(), at::kFloat).add_(sum);
}

}  // namespace gyre::onednn
