// Used in builds without oneDNN: no matrix product can be computed here.
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "gyre/kernels/onednn/product.h"

namespace gyre::onednn {

bool cpu_serves() {
  return false;
}

// Reads ONEDNN_MAX_CPU_ISA as oneDNN does.
bool allows_tiles() {
  const char* max_isa = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string_view name = max_isa == nullptr ? "ALL" : max_isa;
  return name == "ALL" || name == "DEFAULT" || name.find("AMX") != std::string_view::npos;
}

std::string description() {
  return "libtorch (built without oneDNN)";
}

void multiply(const bf16::Sizes&, const bf16::Factor&, const bf16::Factor&, const uint16_t*, uint16_t*) {
  throw std::logic_error("built without oneDNN: this product cannot be made");
}

void multiply(const bf16::Sizes&, const bf16::Factor&, const bf16::Factor&, bool, float*) {
  throw std::logic_error("built without oneDNN: this product cannot be made");
}

void multiply_long(const bf16::Sizes&, const uint16_t*, const uint16_t*, bool, float*) {
  throw std::logic_error("built without oneDNN: this product cannot be made");
}

}  // namespace gyre::onednn
