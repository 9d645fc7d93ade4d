// The hash of names, in its own file so that users of random streams alone need no xxhash.
#include <xxhash.h>

#include "gyre/core/random.h"

namespace gyre {

uint64_t stable_hash(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace gyre
