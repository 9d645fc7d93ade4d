// Used where the target has no AMX or the compiler does not support it: no matrix product can be computed here.
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
