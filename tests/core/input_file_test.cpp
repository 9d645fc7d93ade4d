// Reading whole files: endless and wrong ones end in a message, not in the memory.
#include "gyre/core/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"
#include "gyre/core/replace_file.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(InputFile, AFileWithoutAnEndIsNotReadOn) {
  EXPECT_THAT([] { read_file("/dev/zero"); },
              ThrowsMessage<InputError>(HasSubstr("/dev/zero: has more than 64.0 MiB")));
}

TEST(InputFile, AFileMayHaveAsMuchAsItsReaderTakes) {
  const testing_support::TemporaryDirectory place;
  const std::string content(3'000'000, 'x');
  write_file_atomic(place / "file", content);
  EXPECT_EQ(read_file(place / "file", content.size()), content);
  EXPECT_EQ(read_file(place / "file", kAnyLength), content);
  EXPECT_THAT([&] { read_file(place / "file", content.size() - 1); },
              ThrowsMessage<InputError>(HasSubstr("file: has more than 2.9 MiB")));
}

}  // namespace
}  // namespace gyre
