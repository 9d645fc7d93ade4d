// What the files beside a tokenizer say: added tokens, the end of documents, and settings.
#include "gyre/tokenizers/json/token_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/tokenizers/hugging_face_files.h"
#include "gyre/tokenizers/tokenizer_model.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
namespace fs = std::filesystem;

// An entry of added_tokens_decoder.
Json flags(const std::string& content, const Json& others = Json::object()) {
  Json token = {{"content", content}, {"special", true}};
  token.update(others);
  return token;
}

class TokenFilesTest : public testing::Test {
 protected:
  void write(const std::string& name, const Json& json) { write_file_atomic(place_ / name, json.dump()); }
  void write_gpt2() {
    write("vocab.json", {{"a", 0}, {"b", 1}, {"ab", 2}, {"<|endoftext|>", 3}});
    write_file_atomic(place_ / "merges.txt", "#version: 0.2\na b\n");
  }
  void write_json(const Json& added = Json::array()) {
    write("tokenizer.json",
          {{"added_tokens", added},
           {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
           {"model",
            {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"<|endoftext|>", 3}}}, {"merges", {"a b"}}}}});
  }
  void write_pieces(const std::vector<std::string>& pieces) {  // as protobuf writes them
    std::string model;
    const auto field = [](const std::string& bytes) {
      return '\x0a' + std::string(1, static_cast<char>(bytes.size())) + bytes;
    };
    for (const std::string& piece : pieces) model += field(field(piece));
    write_file_atomic(place_ / "tokenizer.model", model);
  }
  std::unique_ptr<Tokenizer> read(const std::string& end = "") {
    return make_tokenizer(read_tokenizer(place_ / ".", end), "t");
  }
  std::vector<int32_t> encode(std::string_view text) {
    std::vector<int32_t> tokens;
    read()->encode(text, tokens);
    return tokens;
  }
  std::string complaint(const std::string& end = "") {
    try {
      read(end);
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("\n")));
      return error.what();
    }
    return "accepted";
  }

  const testing_support::TemporaryDirectory place_;
};

TEST_F(TokenFilesTest, TokensAreAddedToAVocabulary) {
  write_gpt2();
  write("added_tokens.json", {{"<|end|>", 5}, {"<|start|>", 4}});
  EXPECT_THAT(encode("<|start|>ab<|end|>"), ElementsAre(4, 2, 5));
  EXPECT_EQ(read()->vocabulary_size(), 6);
  EXPECT_EQ(Json::parse(read_tokenizer(place_ / "vocab.json").content)["added_tokens"].size(), 3u);

  // The newer list counts alone, and its flags count for more than ours.
  write("tokenizer_config.json",
        {{"added_tokens_decoder", {{"3", flags("<|endoftext|>", {{"rstrip", true}})}, {"4", flags("<|user|>")}}}});
  EXPECT_THAT(encode("<|user|>ab<|endoftext|>  b"), ElementsAre(4, 2, 3, 1));
  EXPECT_EQ(read()->vocabulary_size(), 5);
}

TEST_F(TokenFilesTest, TokensAreAddedToATokenizerJson) {
  write_json({{{"id", 3}, {"content", "<|endoftext|>"}, {"special", true}}});
  const std::string before = read_file(place_ / "tokenizer.json");
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"3", flags("<|endoftext|>")}}}});
  EXPECT_EQ(read_tokenizer(place_ / ".").content, before) << "with nothing to add it is as it came";
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"4", flags("<|end|>")}, {"5", flags("x")}}}});
  EXPECT_THAT(encode("ab<|end|>x"), ElementsAre(2, 4, 5));
  fs::remove(place_ / "tokenizer_config.json");
  write("added_tokens.json", {{"<|end|>", 4}});
  EXPECT_THAT(encode("ab<|end|>"), ElementsAre(2, 4));
  // Whoever reads it again finds all in it.
  EXPECT_THAT(hugging_face_files(read_tokenizer(place_ / "."), "t").tokenizer, HasSubstr("<|end|>"));
}

// Lower case where it is no special token: it is then looked for behind the normalizer.
TEST_F(TokenFilesTest, AnOldListSaysBySpecialTokensWhichAreSpecial) {
  write_file_atomic(place_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  write("added_tokens.json", {{"<B>", 6}});
  EXPECT_THAT(encode("a <b> <B>"), ElementsAre(5, 6, 6));
  write("special_tokens_map.json", {{"additional_special_tokens", {"<B>"}}});
  EXPECT_THAT(encode("a <b> <B>"), ElementsAre(5, 1, 1, 1, 6));
  const auto files = hugging_face_files(read_tokenizer(place_ / "."), "t");
  EXPECT_EQ(Json::parse(files.tokenizer)["post_processor"]["type"], "TemplateProcessing");
}

TEST_F(TokenFilesTest, ContradictionsAreRefused) {
  write_json({{{"id", 4}, {"content", "<x>"}}});
  const auto with = [&](const Json& added) {
    write("added_tokens.json", added);
    return complaint();
  };
  EXPECT_EQ(with({{"<x>", 4}}), "accepted");
  EXPECT_THAT(with({{"<x>", 5}}), HasSubstr("the token '<x>' has the number 4 in tokenizer.json, and 5 in"));
  EXPECT_THAT(with({{"<y>", 4}}), HasSubstr("'<y>' has the number 4, and 5 is the next one"));
  EXPECT_THAT(with({{"<y>", 6}}), HasSubstr("'<y>' has the number 6, and 5 is the next one"));
  EXPECT_THAT(with({{"<y>", 5}, {"<z>", 5}}), HasSubstr("'<z>' has the number 5, and 6 is the next one"));
  EXPECT_THAT(with({{"ab", 5}}), HasSubstr("'ab' has the number 5, and the vocabulary gives it 2"));
  EXPECT_THAT(with({{"<y>", "5"}}), HasSubstr("added_tokens.json"));
  EXPECT_THAT(with(Json::array()), HasSubstr("added_tokens.json: is no JSON object"));
  fs::remove(place_ / "added_tokens.json");
  write("special_tokens_map.json", {{"additional_special_tokens", {"<x>", "ab"}}});
  EXPECT_EQ(complaint(), "accepted");
  write("special_tokens_map.json", {{"additional_special_tokens", {"<y>"}}});
  EXPECT_THAT(complaint(), HasSubstr("additional_special_tokens has '<y>', to which no file gives a number"));
  write("tokenizer_config.json", {{"added_tokens_decoder", Json::object()}});
  EXPECT_EQ(complaint(), "accepted") << "the older file does not count";
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"four", flags("<y>")}}}});
  EXPECT_THAT(complaint(), HasSubstr("added_tokens_decoder: 'four' is no number"));
}

// transformers' GPT2TokenizerFast takes the first of two such lines, and its GPT2Tokenizer the last.
TEST_F(TokenFilesTest, AMergeThatIsThereTwiceIsRefused) {
  write_gpt2();
  write_file_atomic(place_ / "merges.txt", "#version: 0.2\na b\na b\n");
  EXPECT_THAT(complaint(), HasSubstr("line 3 of the merges beside it is line 2 again, 'a b'"));
}

TEST_F(TokenFilesTest, ASentencePieceModelTakesNoTokens) {
  write_pieces({"<unk>", "<s>", "</s>", "a"});
  const auto with = [&](const Json& added) {
    write("added_tokens.json", added);
    try {
      return read_tokenizer(place_ / ".").kind;
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(with({{"<s>", 1}}), "sentencepiece");
  EXPECT_THAT(with({{"<s>", 2}}), HasSubstr("tokenizer.model: has no piece '<s>' at the number"));
  EXPECT_THAT(with({{"<pad>", 4}}), HasSubstr("save the tokenizer as tokenizer.json"));
}

TEST_F(TokenFilesTest, TheEndThatIsNamedIsTheEnd) {
  write_json({{{"id", 4}, {"content", "<|end|>"}}});
  EXPECT_EQ(read()->end_of_document(), 3);
  write("special_tokens_map.json", {{"eos_token", {{"content", "<|end|>"}}}});
  EXPECT_EQ(read()->end_of_document(), 4);
  EXPECT_EQ(read("ab")->end_of_document(), 2);
  write("tokenizer_config.json", {{"eos_token", "b"}, {"added_tokens_decoder", Json::object()}});
  EXPECT_EQ(read()->end_of_document(), 1) << "the newer file's counts";
  write("tokenizer_config.json", {{"eos_token", "<none>"}, {"added_tokens_decoder", Json::object()}});
  EXPECT_THAT(complaint(), HasSubstr("no token '<none>' to end documents with; name another with gyre prepare --end"));
  EXPECT_EQ(complaint("ab"), "accepted");
  write("tokenizer_config.json", {{"model_max_length", 8}});
  const TokenizerModel kept = read_tokenizer(place_ / ".");
  EXPECT_EQ(make_tokenizer(kept, "t")->end_of_document(), 4);
  EXPECT_EQ(Json::parse(hugging_face_files(kept, "t").tokenizer_config),
            Json::parse(R"({"model_max_length": 8, "eos_token": "<|end|>"})"));
}

// transformers puts the configuration's settings in place of the tokenizer.json's.
TEST_F(TokenFilesTest, OtherSettingsThanTheConfigurationsAreRefused) {
  const auto byte_level = [&](const Json& config) {
    write_json();
    write("tokenizer_config.json", config);
    return complaint();
  };
  EXPECT_EQ(byte_level({{"tokenizer_class", "GPT2Tokenizer"}}), "accepted");
  EXPECT_EQ(byte_level({{"tokenizer_class", "PreTrainedTokenizerFast"}, {"add_prefix_space", true}}), "accepted");
  EXPECT_THAT(
      byte_level({{"add_prefix_space", true}}),
      HasSubstr("add_prefix_space is true by tokenizer_config.json, and the pre_tokenizer's add_prefix_space is "
                "false in tokenizer.json; make them agree"));
  const auto bert = [&](const Json& normalizer, const Json& config) {
    Json json = {{"normalizer", {{"type", "BertNormalizer"}}},
                 {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", {{"[UNK]", 0}, {"[SEP]", 1}}}}}};
    json["normalizer"].update(normalizer);
    write("tokenizer.json", json);
    write("tokenizer_config.json", config);
    return complaint();
  };
  const Json cased = {{"lowercase", false}}, of_bert = {{"tokenizer_class", "BertTokenizer"}};
  EXPECT_EQ(bert(cased, {{"do_lower_case", false}}), "accepted");
  EXPECT_EQ(bert(cased, {{"tokenizer_class", "PreTrainedTokenizerFast"}}), "accepted");
  EXPECT_THAT(bert(cased, of_bert), HasSubstr("do_lower_case is true"));
  EXPECT_THAT(bert(Json::object(), {{"do_lower_case", false}}), HasSubstr("do_lower_case is false"));
  EXPECT_EQ(bert({{"strip_accents", true}}, of_bert), "accepted");
  EXPECT_THAT(bert({{"strip_accents", false}}, of_bert), HasSubstr("strip_accents is true"));
  EXPECT_THAT(bert({{"handle_chinese_chars", false}}, of_bert), HasSubstr("tokenize_chinese_chars is true"));
}

TEST_F(TokenFilesTest, ATokenizerJsonThatGyreDoesNotReadYieldsToItsModel) {
  const std::vector<std::string> pieces = {"<unk>", "<s>", "</s>", "a"};
  write_pieces(pieces);
  const auto kind_with = [&](const Json& json) {
    write("tokenizer.json", json);
    return read_tokenizer(place_ / ".").kind;
  };
  Json json = {{"model", {{"type", "Unigram"}}}};
  for (const std::string& piece : pieces) json["model"]["vocab"].push_back(Json::array({piece, 0.0}));
  json["added_tokens"] = {{{"id", 1}, {"content", "<s>"}}};
  EXPECT_EQ(kind_with(json), "sentencepiece");
  Json other = json;
  other["added_tokens"].push_back({{"id", 4}, {"content", "<pad>"}});
  EXPECT_EQ(kind_with(other), "json");
  other = json;
  other["model"]["vocab"].push_back(Json::array({"b", 0.0}));
  EXPECT_EQ(kind_with(other), "json");
  other = json;
  other["model"]["type"] = "BPE";
  EXPECT_EQ(kind_with(other), "json");
  EXPECT_EQ(kind_with({{"model", Json::array()}}), "json");
}

}  // namespace
}  // namespace gyre
