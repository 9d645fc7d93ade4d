// Every configuration key is recognised despite slips of typing, and none for another word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

// Makes a slip of typing in word[from, to): a letter is left out, typed twice or another, or two change places.
std::string with_slip(const std::string& word, size_t from, size_t to, std::mt19937& random) {
  const auto below = [&](size_t count) { return static_cast<size_t>(random() % count); };
  std::string slipped = word;
  const size_t at = from + below(to - from);
  switch (below(4)) {
    case 0:
      return slipped.erase(at, 1);
    case 1:
      return slipped.insert(at, 1, word[at]);
    case 2:
      slipped[at] = static_cast<char>('a' + below(26));
      return slipped;
    default:
      if (at + 1 < to) std::swap(slipped[at], slipped[at + 1]);
      return slipped;
  }
}

// The keys of the table that `key` is in, by their own names.
std::vector<std::string> keys_beside(const std::string& key) {
  const std::string table = key.substr(0, key.rfind('.') + 1);
  std::vector<std::string> names;
  for (const std::string& other : config_keys()) {
    if (other.starts_with(table) && other.rfind('.') + 1 == table.size()) names.push_back(other.substr(table.size()));
  }
  return names;
}

// Every key is suggested for itself with a slip, and with two if it is long, unless the word is as near to another key.
TEST(Slips, EveryKeyIsRecognisedDespiteSlipsOfTyping) {
  std::mt19937 random(7);
  int tried = 0, near_another = 0;
  for (const std::string& key : config_keys()) {
    const std::string name = key.substr(key.rfind('.') + 1);
    std::vector<std::string> all = keys_beside(key), others = all;
    std::erase(others, name);
    for (int draw = 0; draw < 50; ++draw) {
      const bool is_long = name.size() > 5;
      std::string slipped = with_slip(name, is_long ? name.size() / 2 : 0, name.size(), random);
      if (is_long && draw % 2 == 1) slipped = with_slip(slipped, 0, name.size() / 2, random);
      if (name.size() == 1 || slipped == name) continue;
      ++tried;
      if (nearest(slipped, others)) {
        ++near_another;
      } else {
        EXPECT_EQ(nearest(slipped, all), name) << slipped;
      }
    }
  }
  EXPECT_GE(tried, 3000);
  EXPECT_LE(near_another, tried / 20);
}

// A word that has only half of a key's letters is another word.
TEST(Slips, NoKeyIsSuggestedForAnotherWord) {
  std::mt19937 random(7);
  for (const std::string& key : config_keys()) {
    const std::string name = key.substr(key.rfind('.') + 1);
    if (name.size() < 3) continue;
    for (int draw = 0; draw < 50; ++draw) {
      std::vector<size_t> places(name.size());
      std::iota(places.begin(), places.end(), size_t{0});
      std::shuffle(places.begin(), places.end(), random);
      places.resize((name.size() + 1) / 2);
      std::string word = name;
      for (const size_t place : places) {
        do {
          word[place] = static_cast<char>('a' + random() % 26);
        } while (name.find(word[place]) != std::string::npos);
      }
      EXPECT_EQ(nearest(word, {name}), std::nullopt) << word << " for " << name;
    }
  }
}

}  // namespace
}  // namespace gyre
