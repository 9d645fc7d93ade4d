// Normal forms are those of utf8proc, in a time that grows with the text.
#include "gyre/tokenizers/json/unicode.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "gyre/core/random.h"
#include "gyre/core/utf8.h"

namespace gyre {
namespace {

std::string by_utf8proc(const std::string& text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, std::free);
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(length)};
}

TEST(Unicode, NormalFormsAreThoseOfUtf8proc) {
  const std::pair<unicode::Form, int> forms[] = {
      {unicode::Form::NFC, UTF8PROC_COMPOSE},
      {unicode::Form::NFD, UTF8PROC_DECOMPOSE},
      {unicode::Form::NFKC, UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
      {unicode::Form::NFKD, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
  };
  // Letters and marks that compose, marks of many classes, Hangul with its parts, and anything at all.
  const std::pair<char32_t, char32_t> ranges[] = {
      {'a', 'z'},         {0xC0, 0x24F},    {0x300, 0x36F},    {0x591, 0x5C7},   {0x900, 0xD7F},
      {0x1100, 0x11FF},   {0x1E00, 0x1FFF}, {0x3040, 0x30FF},  {0xAC00, 0xD7A3}, {0xF900, 0xFDFF},
      {0x1D15E, 0x1D1E8}, {0x20, 0xD7FF},   {0xE000, 0x10FFFF}};
  RandomStream stream(1, StreamPurpose::Test, 0);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (uint64_t left = stream.below(30); left > 0; --left) {
      const auto& [first, last] = ranges[stream.below(std::size(ranges))];
      append_character(text, first + static_cast<char32_t>(stream.below(last - first + 1)));
    }
    for (const auto& [form, options] : forms) ASSERT_EQ(unicode::normalize(text, form), by_utf8proc(text, options));
  }
}

// Exchanging neighbours until they are in order would take half an hour.
TEST(Unicode, ALongRunOfMarksIsPutInOrder) {
  constexpr size_t kMarks = 250'000;
  std::string text = "e", above, below;
  for (size_t i = 0; i < kMarks; ++i) {
    text += "\u0301\u0327";
    above += "\u0301";
    below += "\u0327";
  }
  EXPECT_EQ(unicode::normalize(text, unicode::Form::NFD), "e" + below + above);
  // \u0229 is e with the first mark below.
  EXPECT_EQ(unicode::normalize(text, unicode::Form::NFC), "\u0229" + below.substr(2) + above);
}

}  // namespace
}  // namespace gyre
