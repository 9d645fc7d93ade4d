// What may be done in one place only: changing files, in core/file_system.h, since otherwise a test that goes through
// its calls would prove nothing; and making directories for tests, which run in parallel.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <regex>
#include <string>

#include "gyre/core/files.h"
#include "support/source_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// Looks for `forbidden` in the sources of some rooms, except one file. Returns how many files it read.
int look_for(const std::regex& forbidden, std::initializer_list<const char*> rooms, const std::string& except) {
  int files = 0;
  for (const char* room : rooms) {
    for (const auto& entry : fs::recursive_directory_iterator(testing_support::source_directory() / room)) {
      const fs::path path = entry.path();
      if (path.extension() != ".cpp" && path.extension() != ".h") continue;
      if (path.filename() == except) continue;
      ++files;
      const std::string text = read_file(path);
      for (std::sregex_iterator hit(text.begin(), text.end(), forbidden), end; hit != end; ++hit) {
        const auto line = 1 + std::count(text.begin(), text.begin() + hit->position(), '\n');
        ADD_FAILURE() << path.string() << ":" << line << ": " << hit->str();
      }
    }
  }
  return files;
}

TEST(FileSystem, IsTheOnlyPlaceThatChangesFiles) {
  // Writing needs an open file, so it is enough to look for calls that create files.
  const std::regex forbidden(
      R"([^\w>]::(fsync|fdatasync|ftruncate|fchmod|chmod|rename|renameat2|unlink|rmdir|mkdir|creat)\()"
      R"(|[^\w>]::open\([^;]*O_(CREAT|TMPFILE)|\bfopen\(|\bofstream\b)"
      R"(|(fs|filesystem)::(create_director\w+|remove|remove_all|rename|copy|copy_file|resize_file|create_\w*link)\()");
  EXPECT_GT(look_for(forbidden, {"gyre", "apps"}, "file_system.cpp"), 100);
}

TEST(TemporaryDirectory, IsTheOnlyPlaceOfTestsFiles) {
  EXPECT_GT(look_for(std::regex(R"(\b(TempDir|temp_directory_path)\(\))"), {"tests"}, "temporary_directory.h"), 50);
}

}  // namespace
}  // namespace gyre
