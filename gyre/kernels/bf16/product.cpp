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

// c = a b, and `bias` to every row where it is not null.
void multiply_rounded(const Sizes& sizes, const Factor& a, const Factor& b, const uint16_t* bias, void* c) {
  auto* const rounded = static_cast<uint16_t*>(c);
  if (has_tiles()) {
    amx::multiply(sizes, a, b, bias, rounded);
  } else {
    onednn::multiply(sizes, a, b, bias, rounded);
  }
}

// c = a b, or c += a b.
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

void run(const Product& of, const void* first, const void* second, void* result, const void* bias) {
  const uint16_t *one = words(first), *other = words(second);
  const Sizes of_weights{of.out, of.in, of.rows};
  const bool adds = of.kind == Kind::AddedInput || of.kind == Kind::AddedWeight || of.kind == Kind::AddedOuter;
  switch (of.kind) {
    case Kind::Forward:
      return multiply_rounded({of.rows, of.out, of.in}, {one, of.in, false}, {other, of.in, true}, words(bias), result);
    case Kind::BackwardInput:
      return multiply_rounded({of.rows, of.in, of.out}, {one, of.out, false}, {other, of.in, false}, nullptr, result);
    case Kind::WideInput:
    case Kind::AddedInput:
      return multiply_wide({of.rows, of.in, of.out}, {one, of.out, false}, {other, of.in, false}, adds, result);
    case Kind::BackwardWeight:
    case Kind::AddedWeight:
      if (!has_tiles()) return onednn::multiply_long(of_weights, one, other, adds, static_cast<float*>(result));
      break;
    case Kind::Outer:
    case Kind::AddedOuter:
      break;
  }
  multiply_wide(of_weights, {one, of.out, true}, {other, of.in, false}, adds, result);
}

}  // namespace gyre::bf16
