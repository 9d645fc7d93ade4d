// Messages show what would control a terminal.
#include "gyre/core/message.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace gyre {
namespace {

TEST(Message, ControlCharactersAreShownAndLinesStay) {
  EXPECT_EQ(printable_lines("a\x1b[31m\n\nb\x01\n"), "a\\x1b[31m\n\nb\\x01\n");
  EXPECT_EQ(printable_lines(""), "");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), &std::fclose);
  say_lines(out.get(), "a\x1b\nb");
  std::rewind(out.get());
  std::string text(64, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out.get()));
  EXPECT_EQ(text, "a\\x1b\nb\n");
}

}  // namespace
}  // namespace gyre
