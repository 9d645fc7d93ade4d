// For another processor, or by a compiler that does not know the instructions: nothing can be done here.
#include "gyre/kernels/amx/product.h"

namespace gyre::amx {

bool cpu_has_tiles() {
  return false;
}

void multiply(const Sizes&, const Factor&, const Factor&, const uint16_t*, uint16_t*) {}

void multiply(const Sizes&, const Factor&, const Factor&, bool, float*) {}

}  // namespace gyre::amx
