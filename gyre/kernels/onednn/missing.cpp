// Used in builds without oneDNN: no matrix product can be computed here.
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "gyre/kernels/onednn/packed_matrix.h"
#include "gyre/kernels/onednn/product.h"

namespace gyre::onednn {

namespace {

// ONEDNN_MAX_CPU_ISA as oneDNN reads it.
std::string_view max_isa() {
  const char* const name = std::getenv("ONEDNN_MAX_CPU_ISA");
  return name == nullptr ? "ALL" : name;
}

}  // namespace

bool cpu_serves() {
  return false;
}

bool serves_fp32() {
  return false;
}

bool allows_tiles() {
  return max_isa() == "ALL" || max_isa() == "DEFAULT" || max_isa().find("AMX") != std::string_view::npos;
}

// libtorch has a oneDNN of its own, which the variable limits too.
bool is_limited() {
  return max_isa() == "SSE41" || max_isa() == "AVX" || max_isa().starts_with("AVX2") || max_isa() == "AVX512_CORE" ||
         max_isa() == "AVX512_CORE_VNNI";
}

std::string description() {
  return "libtorch (built without oneDNN)";
}

std::unique_ptr<PackedMatrix> pack(const at::Tensor&, const at::Tensor&) {
  return nullptr;
}

std::string fp32_description() {
  return "libtorch";
}

void multiply(const bf16::Sizes&, const bf16::Factor&, const bf16::Factor&, const uint16_t*, uint16_t*) {
  throw std::logic_error("built without oneDNN: this product cannot be made");
}

void multiply(const bf16::Sizes&, const bf16::Factor&, const bf16::Factor&, bool, float*) {
  throw std::logic_error("built without oneDNN: this product cannot be made");
}

void multiply(const ProductSizes&, const FactorOf<float>&, const FactorOf<float>&, const float*, bool, float*) {
  throw std::logic_error("built without oneDNN: this product cannot be made");
}

void multiply_long(const bf16::Sizes&, const uint16_t*, const uint16_t*, bool, float*) {
  throw std::logic_error("built without oneDNN: this product cannot be made");
}

}  // namespace gyre::onednn
