// What a run records about the files that its model was imported from: the type of each tensor, by its name in the
// family's table, so that export can write the same bytes again.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gyre {

inline constexpr const char* kProvenanceFile = "dtypes.json";

struct Provenance {
  std::map<std::string, std::string> dtypes;  // "F32", "BF16", "F16"
  bool operator==(const Provenance&) const = default;
};

std::string to_text(const Provenance& provenance);
// The inverse. InputError says what is wrong with the text, without naming a file.
Provenance parse_provenance(std::string_view text);

}  // namespace gyre
