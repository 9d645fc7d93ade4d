// The hash of names, in a unit of its own: what needs random streams alone does not need xxhash.
#include <xxhash.h>

#include "gyre/core/random.h"

namespace gyre {

uint64_t stable_hash(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace gyre
