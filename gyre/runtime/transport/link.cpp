#include "gyre/runtime/transport/link.h"

#include <fmt/format.h>

namespace gyre {

std::string to_string(const LinkId& id) {
  constexpr const char* kKinds[] = {"activation", "gradient", "reduction", "version",
                                    "norm",       "norm sum", "control",   "report"};
  return fmt::format("the {} link of {}:{}", kKinds[static_cast<int>(id.kind)], id.pipeline, id.stage);
}

}  // namespace gyre
