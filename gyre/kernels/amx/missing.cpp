// For another processor, or by a compiler that does not know the instructions: no product can be made here.
#include <stdexcept>

#include "gyre/kernels/amx/product.h"

namespace gyre::amx {

bool cpu_has_tiles() {
  return false;
}

void multiply(const Sizes&, const Factor&, const Factor&, const uint16_t*, uint16_t*) {
  throw std::logic_error("built without AMX: this product cannot be made");
}

void multiply(const Sizes&, const Factor&, const Factor&, bool, float*) {
  throw std::logic_error("built without AMX: this product cannot be made");
}

}  // namespace gyre::amx
