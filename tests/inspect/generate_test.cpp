// What gyre generate asks of a prompt.
#include "gyre/inspect/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "gyre/build/build.h"
#include "gyre/core/error.h"
#include "gyre/model/stage.h"
#include "gyre/tokenizers/tokenizer.h"

namespace gyre {
namespace {

// Every letter is one token; blanks are none, as with BERT's vocabularies.
class Letters : public Tokenizer {
 public:
  int64_t vocabulary_size() const override { return 256; }
  int32_t end_of_document() const override { return 0; }
  std::string end_of_document_text() const override { return ""; }
  void encode(std::string_view text, std::vector<int32_t>& tokens) const override {
    for (const char c : text) {
      if (c != ' ') tokens.push_back(c);
    }
  }
  size_t cut(std::string_view) const override { return 0; }
  std::string decode(std::span<const int32_t> tokens) const override {
    return std::string(tokens.begin(), tokens.end());
  }
};

TrainedModel small_model() {
  TrainedModel model;
  model.config.model.layers = 1;
  model.config.model.width = 8;
  model.config.model.heads = 2;
  model.config.model.context = 8;
  model.config.model.vocabulary = 256;
  model.tokenizer = std::make_unique<Letters>();
  const Stage stage(build_layers(model.config), 0);
  for (const ParameterSpec& spec : stage.parameters()) model.checkpoint.weights[spec.name] = initial_value(spec, 1);
  return model;
}

GenerateOptions with_prompt(const std::string& prompt) {
  GenerateOptions options;
  options.prompt = prompt;
  options.tokens = 3;
  return options;
}

TEST(Generate, RefusesAPromptWithoutTokens) {
  const TrainedModel model = small_model();
  const auto ignore = [](std::string_view) {};
  EXPECT_NO_THROW(generate(model, with_prompt(" a "), ignore));
  EXPECT_THROW(generate(model, with_prompt("  "), ignore), InputError);
  EXPECT_THROW(generate(model, with_prompt(""), ignore), InputError);
}

// Letters alone, and how many tokens were decoded at once.
class CountedLetters final : public Letters {
 public:
  explicit CountedLetters(size_t& most) : most_(most) {}
  int64_t vocabulary_size() const override { return 128; }
  int32_t end_of_document() const override { return -1; }
  std::string decode(std::span<const int32_t> tokens) const override {
    most_ = std::max(most_, tokens.size());
    return Letters::decode(tokens);
  }

 private:
  size_t& most_;
};

TEST(Generate, DecodesTheLastTokensOnlyHoweverLongTheTextIs) {
  TrainedModel model = small_model();
  size_t most = 0;
  model.tokenizer = std::make_unique<CountedLetters>(most);
  GenerateOptions options = with_prompt("abc");
  options.tokens = 300;
  std::string text;
  generate(model, options, [&text](std::string_view more) { text += more; });
  EXPECT_EQ(text.size(), 300) << "each token is a letter, written once";
  EXPECT_LE(most, 64);
  options.tokens = 50;  // decoded at once
  std::string first;
  generate(model, options, [&first](std::string_view more) { first += more; });
  EXPECT_EQ(text.substr(0, 50), first);
}

}  // namespace
}  // namespace gyre
