#include "gyre/core/wrong_file.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace fs = std::filesystem;

void refuse_file(const fs::path& path, const std::string& meant, const std::string& marker) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return;
  std::string likely;
  // The directory that the file is in, or the one that a run of this configuration would have made.
  const fs::path parent = path.has_parent_path() ? path.parent_path() : ".";
  for (const fs::path& place : {parent, fs::path("runs") / path.stem()}) {
    if (likely.empty() && fs::exists(place / marker, ignored)) likely = ", likely " + printable(place.string());
  }
  throw InputError(fmt::format("{}: is a file; give {}{}", printable(path.string()), meant, likely));
}

std::string hint_of_import(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_regular_file(directory / "config.json", ignored)) return "";
  return "; gyre import makes a run of the model of Hugging Face's transformers that is there";
}

}  // namespace gyre
