#include "gyre/exchange/new_directory.h"

#include <fmt/format.h>

#include <system_error>

#include "gyre/core/error.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// The absolute path of `out`, without a slash at its end. Throws InputError if something is there.
fs::path free_place(const fs::path& out) {
  const fs::path path = fs::absolute(out).lexically_normal();
  const fs::path place = path.has_filename() ? path : path.parent_path();
  if (!is_there(place)) return place;
  std::error_code error;
  if (!fs::is_directory(place, error)) {
    throw InputError(
        fmt::format("{}: is there already, and is not a directory; give --out another name", out.string()));
  }
  if (!fs::is_empty(place, error) || error) {
    throw InputError(
        fmt::format("{}: is there already, and is not empty; give --out the name of a new directory", out.string()));
  }
  return place;
}

}  // namespace

NewDirectory::NewDirectory(const fs::path& out, const std::string& suffix, FileSystem& files)
    : out_(free_place(out)), building_(name_beside(out_, "", suffix), files) {}

}  // namespace gyre
