#include "gyre/core/wrong_file.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace fs = std::filesystem;

void refuse_file(const fs::path& path, const std::string& meant, const std::string& marker) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return;
  std::string likely;
  // The one it is in, or that a configuration of the name has made.
  const fs::path parent = path.has_parent_path() ? path.parent_path() : ".";
  for (const fs::path& place : {parent, fs::path("runs") / path.stem()}) {
    if (likely.empty() && fs::exists(place / marker, none)) likely = ", likely " + printable(place.string());
  }
  throw InputError(fmt::format("{}: is a file; give {}{}", printable(path.string()), meant, likely));
}

}  // namespace gyre
