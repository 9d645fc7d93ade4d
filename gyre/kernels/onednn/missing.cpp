// Built without oneDNN: nothing can be done here.
#include <cstdlib>
#include <string_view>

#include "gyre/kernels/onednn/product.h"

namespace gyre::onednn {

bool cpu_serves() {
  return false;
}

// As oneDNN reads it.
bool allows_tiles() {
  const char* most = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string_view name = most == nullptr ? "ALL" : most;
  return name == "ALL" || name == "DEFAULT" || name.find("AMX") != std::string_view::npos;
}

std::string description() {
  return "libtorch (built without oneDNN)";
}

void multiply(const bf16::Sizes&, const bf16::Factor&, const bf16::Factor&, const uint16_t*, uint16_t*) {}

void multiply(const bf16::Sizes&, const bf16::Factor&, const bf16::Factor&, bool, float*) {}

void multiply_long(const bf16::Sizes&, const uint16_t*, const uint16_t*, bool, float*) {}

}  // namespace gyre::onednn
