// The special tokens of a BERT are those of its data's tokenizer, if that has them.
#include "gyre/config/config.h"
#include "gyre/model/settings/bert_settings.h"
#include "train/fixture.h"

namespace gyre {
namespace {

using testing_support::Runs;
namespace fs = std::filesystem;

class SpecialTokensOfRuns : public Runs {
 protected:
  static std::vector<std::string> bert(const std::string& tokens) {
    return {"model.kind=bert", "data.tokens=" + path(tokens).string(), "run.updates=2"};
  }
  // Text with a vocabulary of words, of which the first are special.
  static void prepare_words(const std::string& name, const std::string& special) {
    write_file_atomic(path(name + ".vocabulary") / "vocab.txt", special + "verse\nand\nthe\nwaters\nof\n:\n");
    PrepareOptions options;
    options.texts = {path("text").string()};
    options.out = path(name);
    options.tokenizer = path(name + ".vocabulary").string();
    prepare(options);
  }
  void SetUp() override {
    if (fs::exists(path("words"))) return;
    for (const char* name : {"words", "few"}) fs::create_directories(path(std::string(name) + ".vocabulary"));
    prepare_words("words", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    prepare_words("few", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
  }
  static void expect(const std::string& run, int64_t vocabulary, int64_t classify, int64_t separator, int64_t mask) {
    const Config config = load_config(path(run) / "config.toml", {});
    const auto own = config.model.own.of_kind("bert").get<BertSettings>();
    EXPECT_EQ(config.model.vocabulary, vocabulary);
    EXPECT_EQ(own.classify_token, classify);
    EXPECT_EQ(own.separator_token, separator);
    EXPECT_EQ(own.mask_token, mask);
  }
};

TEST_F(SpecialTokensOfRuns, AreTheTokenizersIfItHasAllOfThem) {
  run("own", {.set = bert("words")});
  expect("own", 11, 2, 3, 4);
  run("appended", {.set = bert("few")});
  expect("appended", 13, -1, -1, -1);
  std::vector<std::string> given = bert("words");
  for (const char* token : {"model.bert.classify_token=5", "model.bert.separator_token=6", "model.bert.mask_token=7"}) {
    given.emplace_back(token);
  }
  run("given", {.set = given});
  expect("given", 11, 5, 6, 7);
}

// The configuration that the run was made with leaves the vocabulary to the data, in both sessions.
TEST_F(SpecialTokensOfRuns, StayWhatTheyWereWhenTheRunBegan) {
  const auto resume_with_configuration = [&](const std::string& name) {
    std::vector<std::string> set = bert("words");
    set.back() = "run.updates=4";
    TrainOptions options = options_of(name, {.set = set, .resume = true});
    options.config = path("run.toml");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log(std::fopen(path("log").c_str(), "w"), &std::fclose);
    Progress progress(log.get(), false);
    return train(options, progress).step;
  };
  run("begun", {.set = bert("words")});
  EXPECT_EQ(resume_with_configuration("begun"), 4);
  expect("begun", 11, 2, 3, 4);
  EXPECT_EQ(lines("begun", "resume").at(0).at("changed").size(), 1);  // run.updates
  fs::remove(path("begun") / "config.toml");
  EXPECT_EQ(resume_with_configuration("begun"), 4);

  // Numbered after the vocabulary, as in runs of earlier versions.
  std::vector<std::string> numbered = bert("words");
  numbered.emplace_back("model.vocabulary=14");
  run("numbered", {.set = numbered});
  expect("numbered", 14, -1, -1, -1);
  EXPECT_EQ(resume_with_configuration("numbered"), 4);
  expect("numbered", 14, -1, -1, -1);
}

}  // namespace
}  // namespace gyre
