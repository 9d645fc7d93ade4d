// What is refused before the TOML library reads it: too many dots, and characters that break it.
#include "gyre/core/toml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"
#include "gyre/core/toml_fields.h"

namespace gyre {
namespace {

TEST(TomlText, CharactersBeyondAsciiBelongInCommentsAndStringsOfOneLine) {
  for (const char* sound : {"a = 1", "# Größe", "a = \"Größe\" # größer", "a = 'Größe\\'\nb = 2", "a = \"\\\"ö\"",
                            "a = \"\" # ö", "a = \"\"\"\nlong \"\"\"\"\" # ö",
                            "\xef\xbb\xbf"
                            "a = 1",
                            "a = '''it's''' # ö"}) {
    EXPECT_NO_THROW(check_toml_text(sound, "f")) << sound;
  }
  for (const char* stray : {"é", "a = 1é", "a = \"b\" é", "a = \"\" é", "a = \"\"\"\"\"\"é", "a = \"\"\"\"b\"\"\"\"é",
                            "a = '''é'''", "a = \"\"\"b \\\n é\"\"\"", "a = 'b\\' é", "# a\né = 1", "a = [5.b\"cé \"]",
                            "a = 5.'é'", "a = ''\"é\"", "a = \xff"}) {
    EXPECT_THROW(check_toml_text(stray, "f"), InputError) << stray;
  }
  try {
    check_toml_text("# ä\n\n[model]\nwidth = 2é", "f.toml");
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("f.toml:4: "));
  }
}

TEST(TomlText, TablesWithinTablesGoOnlySoDeep) {
  std::string deep = "a";
  for (int i = 0; i < 200'000; ++i) deep += ".a";
  EXPECT_THROW(check_toml_text(deep + " = 1", "f"), InputError);
  EXPECT_NO_THROW(check_toml_text("a = [" + std::string(1000, '.') + "]", "f"));
  std::string digits = "1";
  for (int i = 0; i < 200'000; ++i) digits += ".1";
  EXPECT_THROW(check_toml_text(digits + " = 1", "f"), InputError);
}

// A long list of paths, names of hosts and numbers is none.
TEST(TomlText, DotsOfStringsCommentsAndNumbersDoNotCount) {
  std::string many;
  for (int i = 0; i < 5'000; ++i) many += "[[host]]  # v1.2.3\nname = \"a.b.c\"\nspeed = 1.0\nleast = -0.5e-3\n";
  EXPECT_NO_THROW(check_toml_text(many, "f"));
}

TEST(TomlText, StringsAreWrittenSoThatTheyCanBeRead) {
  EXPECT_EQ(toml_string("a\x7f\n\"b\\"), R"("a\u007f\u000a\"b\\")");
}

}  // namespace
}  // namespace gyre
