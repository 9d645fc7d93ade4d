// Patterns mean what they mean to the Oniguruma library, which gave the expected results, or are refused.
#include "gyre/tokenizers/json/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  const Regex regex(pattern, "t");
  RegexScratch scratch;
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    const auto [begin, end] = regex.find(text, at, scratch);
    if (begin < end) found.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return found;
}
std::string complaint(const std::string& pattern) {
  try {
    const Regex regex(pattern, "t");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Regex, APlusBehindAnIntervalRepeatsIt) {
  EXPECT_THAT(matches(R"(\p{N}{1,3}+)", "1234"), ElementsAre("1234"));
  EXPECT_THAT(matches("(?:ab){1,2}+b", "abababb"), ElementsAre("abababb"));
}

TEST(Regex, IntervalsAreRubys) {
  EXPECT_THAT(matches("xa{,2}", "xaaa x"), ElementsAre("xaa", "x"));
  EXPECT_THAT(matches("a{2}?b", "aab b"), ElementsAre("aab", "b"));
  EXPECT_THAT(matches("a{1,2}?", "aa"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("a{1|b}", "a{1 b}"), ElementsAre("a{1", "b}"));
  EXPECT_THAT(matches("a++|b{2}", "aabb"), ElementsAre("aa", "bb"));
}

TEST(Regex, WordsAreAlphabeticMarksDigitsAndConnectors) {
  EXPECT_THAT(matches(R"(\w+)", "e\u0301\u20dd_\u203f\u24b6\u00b2\u2074 \u2160\u0967-"),
              ElementsAre("e\u0301\u20dd_\u203f\u24b6\u00b2", "\u2160\u0967"));
  EXPECT_THAT(matches(R"(\W+)", "a\u2074\u200db"), ElementsAre("\u2074\u200d"));
  EXPECT_THAT(matches(R"([\w]+)", "a\u00b2b"), ElementsAre("a", "b"));  // Latin-1's only outside of [ ]
  EXPECT_THAT(matches(R"([^\W\d_]+)", "ab1_c"), ElementsAre("ab", "c"));
  EXPECT_THAT(matches(R"(\b\w)", "e\u0301a \u24b6b"), ElementsAre("e", "\u24b6"));
  EXPECT_THAT(matches(R"(\B.)", "ab-"), ElementsAre("b"));
}

TEST(Regex, ClassesMayHaveComplementsInThem) {
  EXPECT_THAT(matches(R"([^\S\r\n]+)", "a \t\nb"), ElementsAre(" \t"));
  EXPECT_THAT(matches(R"([\S])", "a b"), ElementsAre("a", "b"));
  EXPECT_THAT(matches(R"([\W\d]+)", "a1-b"), ElementsAre("1-"));
  EXPECT_THAT(matches(R"([^\S^]+)", "a ^ b"), ElementsAre(" ", " "));
  EXPECT_THAT(matches(R"([[:^alpha:]]+)", "a1 b"), ElementsAre("1 "));
}

TEST(Regex, NamedClassesAreThoseOfUnicode) {
  EXPECT_THAT(matches("[[:alpha:]]+", "a\u0345\u24b6\u0301b"), ElementsAre("a\u0345\u24b6", "b"));
  EXPECT_THAT(matches("[[:punct:]]+", "a,$\u3001b+\u20ac\u00b2"), ElementsAre(",$\u3001", "+\u20ac"));
  EXPECT_THAT(matches("[[:upper:][:digit:]]+", "A\u2160\u0661a"), ElementsAre("A\u2160\u0661"));
  EXPECT_THAT(matches(R"(\p{Han}+)", "\u6f22\u3001\u3005"), ElementsAre("\u6f22", "\u3005"));
  EXPECT_THAT(matches(R"(\p{lu}|\P{^nd}|\p{^L}+)", "aB1 \u0661"), ElementsAre("B", "1", " \u0661"));
}

TEST(Regex, EscapesAndOptionsAreRubys) {
  EXPECT_THAT(matches(R"(\v)", "\n\x0b\r"), ElementsAre("\x0b"));
  EXPECT_THAT(matches(R"(\u00e9|\x{6f22}|\x41)",
                      "\u00e9\u6f22"
                      "A"),
              ElementsAre("\u00e9", "\u6f22", "A"));
  EXPECT_THAT(matches("a.|(?m:b.)", "a\nb\n"), ElementsAre("b\n"));
  EXPECT_THAT(matches("x|(?i)A|B", "Xab"), ElementsAre("a", "b"));
  EXPECT_THAT(matches("(?i:'s|'ll)|.", "'S'Ll"), ElementsAre("'S", "'Ll"));
  EXPECT_THAT(matches(R"([]a]+|\$)", "a]$"), ElementsAre("a]", "$"));
  EXPECT_THAT(matches(R"(\s+(?!\S)|\s)", "a  b\u180e"), ElementsAre(" ", " "));
}

TEST(Regex, RefusesWhatMeansSomethingElseToPcre2) {
  for (const char* pattern : {R"(\V)",   R"(\pL)",      R"(\R)",         R"(\h)",           R"(\xe9)",
                              "[a&&b]",  "[a[b]]",      "a+*",           "a(?i)b|c",        "(?x: a)",
                              "(?i:ss)", "(?i:\u00df)", R"((?i)\p{Lu})", "(?i)[[:upper:]]", R"(\p{Script=Han})",
                              "(?<n>a)", "(*FAIL)",     R"((a)\1)",      "[a-\\S]",         "*a"}) {
    EXPECT_THAT(complaint(pattern), HasSubstr("which this gyre does not know")) << pattern;
  }
  EXPECT_THAT(complaint("(a"), HasSubstr("is not understood"));
  EXPECT_EQ(complaint("(?i:'s|\u2019s|stop)"), "t: the pattern has '(?i) with st', which this gyre does not know");
  EXPECT_EQ(complaint("(?i:'s|\u2019s)"), "accepted");
}

TEST(Regex, KnowsWhetherItMayMatchNothing) {
  EXPECT_TRUE(Regex("a*", "t").may_be_empty());
  EXPECT_FALSE(Regex(R"(\s+(?!\S)|[^\S\n])", "t").may_be_empty());
}

}  // namespace
}  // namespace gyre
