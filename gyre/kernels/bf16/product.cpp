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

void run_with_tiles(const Product& of, const void* first, const void* second, void* result, const void* bias) {
  switch (of.kind) {
    case Kind::Forward:
      return amx::multiply({of.rows, of.out, of.in}, {words(first), of.in, false}, {words(second), of.in, true},
                           words(bias), static_cast<uint16_t*>(result));
    case Kind::BackwardInput:
      return amx::multiply({of.rows, of.in, of.out}, {words(first), of.out, false}, {words(second), of.in, false},
                           nullptr, static_cast<uint16_t*>(result));
    case Kind::BackwardWeight:
    case Kind::AddedWeight:
    case Kind::Outer:
    case Kind::AddedOuter:
      break;
  }
  const bool adds = of.kind == Kind::AddedWeight || of.kind == Kind::AddedOuter;
  amx::multiply({of.out, of.in, of.rows}, {words(first), of.out, true}, {words(second), of.in, false}, adds,
                static_cast<float*>(result));
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

bool multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool wide, void* c) {
  if (!has_tiles()) return false;
  if (wide) {
    amx::multiply(sizes, a, b, /*adds=*/false, static_cast<float*>(c));
  } else {
    amx::multiply(sizes, a, b, nullptr, static_cast<uint16_t*>(c));
  }
  return true;
}

void run(const Product& product, const void* first, const void* second, void* result, const void* bias) {
  if (has_tiles()) {
    run_with_tiles(product, first, second, result, bias);
  } else {
    onednn::run(product, first, second, result, bias);
  }
}

}  // namespace gyre::bf16
