// Nothing changes files but through core/file_system.h: else a test that walks over its calls proves nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>

#include "gyre/core/files.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

TEST(FileSystem, IsTheOnlyPlaceThatChangesFiles) {
  // Writing needs an open file: opening to create is what is looked for.
  const std::regex forbidden(
      R"([^\w>]::(fsync|fdatasync|ftruncate|rename|renameat2|unlink|rmdir|mkdir|creat)\()"
      R"(|[^\w>]::open\([^;]*O_(CREAT|TMPFILE)|\bfopen\(|\bofstream\b)"
      R"(|(fs|filesystem)::(create_director\w+|remove|remove_all|rename|copy|copy_file|resize_file|create_\w*link)\()");
  int files = 0;
  for (const char* room : {"gyre", "apps"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(GYRE_SOURCE_DIR) / room)) {
      const fs::path path = entry.path();
      if (path.extension() != ".cpp" && path.extension() != ".h") continue;
      if (path.filename() == "file_system.cpp") continue;
      ++files;
      const std::string text = read_file(path);
      for (std::sregex_iterator hit(text.begin(), text.end(), forbidden), end; hit != end; ++hit) {
        const auto line = 1 + std::count(text.begin(), text.begin() + hit->position(), '\n');
        ADD_FAILURE() << path.string() << ":" << line << ": " << hit->str();
      }
    }
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace gyre
