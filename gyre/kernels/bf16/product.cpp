#include "gyre/kernels/bf16/product.h"

#include "gyre/kernels/amx/product.h"
#include "gyre/kernels/onednn/product.h"

namespace gyre::bf16 {
namespace {

bool has_tiles() {
  static const bool has = onednn::allows_tiles() && amx::cpu_has_tiles();
  return has;
}

const uint16_t* words(const void* pointer) {
  return static_cast<const uint16_t*>(pointer);
}

// c = a b, plus `bias` in every row if it is not null; in bf16.
void multiply_rounded(const Sizes& sizes, const Factor& a, const Factor& b, const uint16_t* bias, void* c) {
  auto* const rounded = static_cast<uint16_t*>(c);
  if (has_tiles()) {
    amx::multiply(sizes, a, b, bias, rounded);
  } else {
    onednn::multiply(sizes, a, b, bias, rounded);
  }
}

// c = a b, or c += a b if `adds`; in fp32.
void multiply_wide(const Sizes& sizes, const Factor& a, const Factor& b, bool adds, void* c) {
  auto* const wide = static_cast<float*>(c);
  if (has_tiles()) {
    amx::multiply(sizes, a, b, adds, wide);
  } else {
    onednn::multiply(sizes, a, b, adds, wide);
  }
}

}  // namespace

bool cpu_serves() {
  return has_tiles() || onednn::cpu_serves();
}

bool is_by_onednn() {
  return !has_tiles() && onednn::cpu_serves();
}

bool adds_in_place() {
  return has_tiles();
}

std::string description() {
  return has_tiles() ? "gyre (AMX)" : onednn::description();
}

void multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool wide, void* c) {
  if (wide) {
    multiply_wide(sizes, a, b, /*adds=*/false, c);
  } else {
    multiply_rounded(sizes, a, b, nullptr, c);
  }
}

void run(const Product& product, const void* first, const void* second, void* result, const void* bias) {
  const uint16_t *left = words(first), *right = words(second);
  const Sizes weight_sizes{product.out, product.in, product.rows};
  const bool adds =
      product.kind == Kind::AddedInput || product.kind == Kind::AddedWeight || product.kind == Kind::AddedOuter;
  switch (product.kind) {
    case Kind::Forward:
      return multiply_rounded({product.rows, product.out, product.in}, {left, product.in, false},
                              {right, product.in, true}, words(bias), result);
    case Kind::BackwardInput:
      return multiply_rounded({product.rows, product.in, product.out}, {left, product.out, false},
                              {right, product.in, false}, nullptr, result);
    case Kind::WideInput:
    case Kind::AddedInput:
      return multiply_wide({product.rows, product.in, product.out}, {left, product.out, false},
                           {right, product.in, false}, adds, result);
    case Kind::BackwardWeight:
    case Kind::AddedWeight:
      if (!has_tiles()) return onednn::multiply_long(weight_sizes, left, right, adds, static_cast<float*>(result));
      break;
    case Kind::Outer:
    case Kind::AddedOuter:
      break;
  }
  multiply_wide(weight_sizes, {left, product.out, true}, {right, product.in, false}, adds, result);
}

}  // namespace gyre::bf16
