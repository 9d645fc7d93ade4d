#include "tiny20/breakdown.h"

#include <ATen/record_function.h>

#include <array>
#include <atomic>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <string_view>

namespace gyre::bench {
namespace {

using Clock = std::chrono::steady_clock;

enum Kind { Products, Biases, Attention, Norms, Activation, Loss, Embedding, Optimizer, Copies, Sums, Other, Kinds };
constexpr std::array<const char*, Kinds> kNames = {
    "products",  "gradients of biases",    "attention's rest", "norms",           "activation", "loss", "embedding",
    "optimizer", "copies and conversions", "sums of branches", "other operations"};

// Static, because callbacks are plain functions.
std::array<std::atomic<int64_t>, Kinds> nanoseconds;

struct Frame final : at::ObserverContext {
  Kind kind = Other;
  Clock::time_point begin;
  Clock::duration inside{};  // time of frames nested in this one
  Frame* outer = nullptr;
};
thread_local Frame* innermost = nullptr;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const std::string_view one : names) {
    if (name == one) return true;
  }
  return false;
}

Kind kind_of_scope(std::string_view name) {
  if (name == "gyre::update") return Optimizer;
  if (is_one_of(name, {"gyre::linear", "gyre::matrix_product", "gyre::attention_product"})) return Products;
  if (name == "gyre::bias_gradient") return Biases;
  if (name == "gyre::attention" || name == "gyre::rotary") return Attention;
  if (name == "gyre::norm") return Norms;
  if (name == "gyre::activation") return Activation;
  if (name == "gyre::cross_entropy") return Loss;
  if (name == "gyre::embedding") return Embedding;
  return Other;
}

Kind kind_of(std::string_view name, const Frame* outer) {
  if (name.starts_with("gyre::")) {
    return outer != nullptr && outer->kind == Optimizer ? Optimizer : kind_of_scope(name);
  }
  if (outer != nullptr && outer->kind == Optimizer) return Optimizer;
  if (is_one_of(name, {"aten::linear", "aten::addmm", "aten::addmm_", "aten::mm", "aten::bmm", "aten::matmul"}))
    return Products;
  if (outer != nullptr && outer->kind != Other) return outer->kind;
  if (is_one_of(name, {"aten::copy_", "aten::to", "aten::_to_copy", "aten::clone", "aten::contiguous"})) return Copies;
  if (is_one_of(name, {"aten::add", "aten::add_"})) return Sums;
  return Other;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  auto frame = std::make_unique<Frame>();
  frame->outer = innermost;
  frame->kind = kind_of(function.name(), innermost);
  frame->begin = Clock::now();
  innermost = frame.get();
  return frame;
}

void end(const at::RecordFunction&, at::ObserverContext* context) {
  auto* frame = static_cast<Frame*>(context);
  const Clock::duration whole = Clock::now() - frame->begin;
  nanoseconds[frame->kind] += std::chrono::nanoseconds(whole - frame->inside).count();
  innermost = frame->outer;
  if (innermost != nullptr) innermost->inside += whole;
}

}  // namespace

Breakdown::Breakdown() {
  for (auto& kind : nanoseconds) kind = 0;
  at::addGlobalCallback(
      at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
}

Breakdown::~Breakdown() {
  at::clearGlobalCallbacks();
}

KindSeconds Breakdown::seconds() const {
  KindSeconds result;
  for (size_t i = 0; i < kNames.size(); ++i) result.emplace_back(kNames[i], 1e-9 * static_cast<double>(nanoseconds[i]));
  return result;
}

}  // namespace gyre::bench
