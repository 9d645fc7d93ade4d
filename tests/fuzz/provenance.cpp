// The record that a run keeps about imported tensors.
#include "gyre/exchange/hugging_face/provenance.h"
#include "fuzz/targets.h"

namespace gyre::fuzz {

void provenance(std::string_view input) {
  const auto known = accepted([&] { return parse_provenance(input); });
  if (known) require(parse_provenance(to_text(*known)) == *known, "types come back the same");
}

}  // namespace gyre::fuzz
