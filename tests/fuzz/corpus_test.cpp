// Runs the fuzzer's targets without the fuzzer: on every input of the corpus, which holds all past findings so that
// they stay fixed, on mutations of them, and on very long or deeply nested texts.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/mutations.h"
#include "fuzz/targets.h"
#include "gyre/core/files.h"
#include "support/source_directory.h"
#include "support/temporary_directory.h"

namespace gyre::fuzz {
namespace {

namespace fs = std::filesystem;

class Corpus : public ::testing::TestWithParam<Target> {
 protected:
  // Whatever an input says, one gigabyte more than the process already uses must be enough.
  static void SetUpTestSuite() {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limits{};
    ::getrlimit(RLIMIT_AS, &limits);
    const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{1} << 30);
    limits.rlim_cur = std::min(limits.rlim_max, most);
    ::setrlimit(RLIMIT_AS, &limits);
  }

  // Writes the input to a file first, in case the target crashes or hangs.
  void run(const std::string& input, const std::string& what) {
    const fs::path copy = place_ / GetParam().name;
    std::ofstream(copy, std::ios::binary) << input;
    try {
      GetParam().run(input);
      fs::remove(copy);
    } catch (const std::exception& error) {
      place_.keep();
      ADD_FAILURE() << what << ": " << error.what() << "; the input is in " << copy;
    }
  }

  static std::vector<std::string> inputs() {
    std::vector<fs::path> files;
    for (const auto& entry :
         fs::directory_iterator(testing_support::source_directory() / "tests/fuzz/corpus" / GetParam().name)) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::vector<std::string> inputs;
    for (const fs::path& file : files) inputs.push_back(read_file(file));
    return inputs;
  }

  testing_support::TemporaryDirectory place_;
};

TEST_P(Corpus, IsReadOrRefused) {
  const auto corpus = inputs();
  ASSERT_FALSE(corpus.empty());
  for (size_t i = 0; i < corpus.size(); ++i) run(corpus[i], "input " + std::to_string(i) + " of the corpus");
}

TEST_P(Corpus, MutatedIsReadOrRefused) {
  Mutations mutations(inputs());
  for (int i = 0; i < 3000 && !HasFailure(); ++i) run(mutations.next(), "mutation " + std::to_string(i));
}

// Each text also follows the first half of an input, where it may continue what has begun.
TEST_P(Corpus, LongOrNestedIsReadOrRefused) {
  const auto corpus = inputs();
  for (const char* token : {"[", "{\"a\":", "{", "a.", "[a.", "a=[", "a={a=", "\"", "0", "-", "\n", ",", " ", "0F0 ",
                            "0F0,", "\n[a]", "[[a]]\n", "\\", "#"}) {
    std::string text;
    while (text.size() < 200'000) text += token;
    run(text, std::string("nothing but ") + token);
    const std::string& input = corpus.front();
    run(input.substr(0, input.size() / 2) + text, std::string("half an input and ") + token);
  }
}

// Well-formed but deeply nested text, by itself and in place of values of an input.
TEST_P(Corpus, DeepIsReadOrRefused) {
  const std::string input = inputs().front();
  const std::pair<std::string, std::string> brackets[] = {{"[", "]"}, {"{\"a\":", "}"}, {"{a=", "}"}};
  for (const auto& [open, close] : brackets) {
    std::string deep = "1";
    for (int depth = 0; depth < 100'000; ++depth) deep += close;
    std::string front;
    for (int depth = 0; depth < 100'000; ++depth) front += open;
    deep.insert(0, front);
    run(deep, "nothing but " + open);
    size_t value = 0;
    for (int i = 0; i < 8 && (value = input.find_first_of(":=", value)) != std::string::npos; ++i) {
      const size_t end = std::min(input.find_first_of(",}\n", ++value), input.size());
      run(input.substr(0, value) + deep + input.substr(end), open + " for value " + std::to_string(i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gyre::fuzz
