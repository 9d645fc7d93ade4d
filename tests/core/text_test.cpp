// Text for people.
#include "gyre/core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/core/bytes.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

TEST(Text, SuggestsTheNearestNameAndOtherwiseListsAll) {
  EXPECT_THAT(suggestion("widht", {"layers", "width"}), HasSubstr("did you mean 'width'?"));
  const std::string all = suggestion("zebra", {"layers", "width"});
  EXPECT_THAT(all, HasSubstr("layers"));
  EXPECT_THAT(all, HasSubstr("width"));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("did you mean")));
}

TEST(Text, SlipsOfTypingAreSeenThrough) {
  const std::vector<std::string> names = {"kind", "lr", "warmup", "weight_decay", "basis-rotation", "seed", "k"};
  const std::vector<std::pair<std::string, std::string>> slips = {
      {"knid", "kind"},
      {"rl", "lr"},
      {"lrs", "lr"},
      {"LR", "lr"},
      {"warm-up", "warmup"},
      {"Weight-Decay", "weight_decay"},
      {"wieght_deacy", "weight_decay"},
      {"weightdecay", "weight_decay"},
      {"BASIS_ROTTAION", "basis-rotation"},
      {"seeed", "seed"},
  };
  for (const auto& [typed, meant] : slips) EXPECT_EQ(nearest(typed, names), meant) << typed;
  for (const char* other :
       {"nonsense", "", "x", "step", "bind_to", "rate", "weights", "decay", "rotation", "mind_set"}) {
    EXPECT_EQ(nearest(other, names), std::nullopt) << other;
  }
  EXPECT_EQ(nearest("seed", {"feed", "seed"}), "seed");
  EXPECT_EQ(nearest("seed", {}), std::nullopt);
}

TEST(Text, Sizes) {
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(1576, 2), "1.54 KiB");
  EXPECT_EQ(human_count(12345678), "12.3M");
  EXPECT_EQ(human_count(4.05e11), "405.0B");
  EXPECT_EQ(human_count(1.5e13), "15.0T");
  EXPECT_EQ(human_count(2e18), "2e+18");
  EXPECT_EQ(human_duration(65), "1:05");
  EXPECT_EQ(human_duration(3725), "1:02:05");
}

TEST(Text, SizesThatAreComparedDiffer) {
  EXPECT_EQ(distinct_bytes(1536, 2048), std::pair(std::string("1.5 KiB"), std::string("2.0 KiB")));
  EXPECT_EQ(distinct_bytes(2420000, 2411724), std::pair(std::string("2.31 MiB"), std::string("2.30 MiB")));
  EXPECT_EQ(distinct_bytes(1536, 1536), std::pair(std::string("1.5 KiB"), std::string("1.5 KiB")));
  for (const double more : {1e3, 1e6, 1e9, 1e12, 1e15}) {
    const auto [a, b] = distinct_bytes(more, more + 1);
    EXPECT_NE(a, b);
  }
}

TEST(Text, CountedHasTheSingularAndThePlural) {
  EXPECT_EQ(counted(0, "stage"), "0 stages");
  EXPECT_EQ(counted(1, "stage"), "1 stage");
  EXPECT_EQ(counted(2, "microbatch"), "2 microbatches");
  EXPECT_EQ(counted(1, "microbatch"), "1 microbatch");
  EXPECT_EQ(counted(1, "study"), "1 study");
  EXPECT_EQ(counted(2, "study"), "2 studies");
  EXPECT_EQ(counted(2, "key"), "2 keys");
}

TEST(Text, PrintableIsOneLine) {
  EXPECT_EQ(printable("a b"), "a b");
  EXPECT_EQ(printable(std::string("a\0b\n\t\x1b[m\x7f", 9)), "a\\x00b\\n\\t\\x1b[m\\x7f");
  EXPECT_EQ(printable("Ω"), "Ω");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m\xc2\xa9"),
            "a\\x9b31m\xc2\xa9")
      << "U+009B begins a terminal's command as ESC [ does";
}

TEST(Text, ShellWordIsOneWord) {
  EXPECT_EQ(shell_word("runs/a-1_b.c"), "runs/a-1_b.c");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a\x1b'\u009b\u00e9"), R"($'a\x1b\x27\xc2\x9b\xc3\xa9')");  // nothing that a terminal obeys
}

TEST(Text, Joins) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
}

}  // namespace
}  // namespace gyre
