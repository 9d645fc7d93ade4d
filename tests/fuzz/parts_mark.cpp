// The marks of directories that hold parts of checkpoints.
#include "gyre/checkpoint/format/parts_mark.h"

#include "fuzz/targets.h"

namespace gyre::fuzz {

void parts_mark(std::string_view input) {
  const auto mark = accepted([&] { return parse_parts_mark(input); });
  if (mark) require(parse_parts_mark(to_text(*mark)) == *mark, "a mark comes back the same");
}

}  // namespace gyre::fuzz
