// sentencepiece models: encoding by words equals encoding whole texts, cuts do not change tokens, and export to Hugging
// Face.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/random.h"
#include "gyre/tokenizers/hugging_face_files.h"
#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"
#include "gyre/tokenizers/tokenizer_model.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines() {
  RandomStream stream(1, StreamPurpose::Test, 1);
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i) {
    std::string line;
    for (int j = 0; j < 9; ++j) {
      for (uint64_t k = 1 + stream.below(5); k > 0; --k) line += static_cast<char>('a' + stream.below(8));
      line += ' ';
    }
    lines.push_back(line);
  }
  return lines;
}

// The fields of a model, written as protobuf writes them.
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
std::string field(int number, int value) {
  std::string key(1, static_cast<char>((number << 3) & 0x7F));
  if (number >= 16) key = std::string{static_cast<char>(0x80 | (number << 3 & 0x7F)), static_cast<char>(number >> 4)};
  return key + static_cast<char>(value);
}

std::string complaint(const std::string& bytes) {
  try {
    SentencePieceModel::parse(bytes, "m");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SentencePiece, ReadsWhatTheLibraryKeepsToItself) {
  const SentencePieceModel model = SentencePieceModel::parse(
      field(1, field(1, "ab") + field(3, 4)) + field(2, field(3, 2) + field(35, 1)) + field(3, field(3, 0)), "m");
  ASSERT_EQ(model.pieces.size(), 1u);
  EXPECT_EQ(model.pieces[0].text, "ab");
  EXPECT_EQ(model.pieces[0].type, SentencePiece::UserDefined);
  EXPECT_EQ(model.type, SentencePieceModel::Bpe);
  EXPECT_TRUE(model.byte_fallback);
  EXPECT_FALSE(model.add_dummy_prefix);
  EXPECT_TRUE(model.remove_extra_whitespaces);
}

TEST(SentencePiece, RefusesWhatIsNoneAndUnknownTypes) {
  EXPECT_THAT(complaint("plain text"), HasSubstr("not a sentencepiece model"));
  EXPECT_THAT(complaint(""), HasSubstr("no pieces"));
  EXPECT_THAT(complaint(field(1, field(1, "ab")) + field(2, field(3, 9))), HasSubstr("type 9, which is unknown"));
}

// Our reader does not look for an unknown piece, which the library cannot do without.
TEST(SentencePiece, AModelThatOnlyOurReaderAcceptsIsRefused) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  const std::string model = field(1, field(1, "ab"));
  EXPECT_EQ(complaint(model), "accepted");
  EXPECT_THAT([&] { parse_sentencepiece_tokenizer(model, "m", "ab"); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("sentencepiece does not take this model")));
}

TEST(SentencePiece, CutsDoNotShow) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  const std::string model = train_bpe_tokenizer(lines(), 300);
  const auto tokenizer = parse_sentencepiece_tokenizer(model, "m", "");
  std::string text = "abc  def\nab\n\n c déf ab\xe2\x96\x81 abc a";
  std::vector<int32_t> whole;
  tokenizer->encode(text, whole);
  EXPECT_EQ(tokenizer->decode(whole).substr(0, 8), "abc  def");
  size_t cuts = 0;
  for (size_t n = 1; n < text.size(); ++n) {
    const size_t at = tokenizer->cut(std::string_view(text).substr(0, n));
    ASSERT_LE(at, n);
    if (at == 0) continue;
    ++cuts;
    std::vector<int32_t> parts;
    tokenizer->encode(std::string_view(text).substr(0, at), parts);
    tokenizer->encode_rest(std::string_view(text).substr(at), parts);
    EXPECT_EQ(parts, whole) << at;
  }
  EXPECT_GT(cuts, 10u);
}

// So that a text can be written as it grows: the character is not there yet, and nothing else is in its place.
TEST(SentencePiece, ACharacterInBytesIsDecodedOnceAllAreThere) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  const auto tokenizer = parse_sentencepiece_tokenizer(train_bpe_tokenizer(lines(), 300), "m", "");
  const std::string text = "ab \u20ac\xf0\x9f\x98\x80 \u00e9cd\n";
  std::vector<int32_t> tokens;
  tokenizer->encode(text, tokens);
  EXPECT_EQ(tokenizer->decode(tokens), text);
  for (size_t n = 0; n < tokens.size(); ++n) {
    const std::string part = tokenizer->decode(std::span(tokens).first(n));
    EXPECT_EQ(part, text.substr(0, part.size())) << n;
  }
  std::vector<int32_t> byte;  // the first of three, alone
  tokenizer->encode("\u20ac", byte);
  byte.resize(byte.size() - 2);
  EXPECT_TRUE(tokenizer->decode(byte).ends_with("\xe2"));
  byte.push_back(tokens.front());
  EXPECT_THAT(tokenizer->decode(byte), HasSubstr("\ufffd"));  // is not UTF-8 any more, whatever follows
}

// More of the same text would not be taken into the sample.
TEST(SentencePiece, OfASampleThatIsTooSmallItSaysWhatWasTaken) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  EXPECT_THAT([] { train_bpe_tokenizer(lines(), 5000); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("or more text")));
  EXPECT_THAT([] { train_bpe_tokenizer(lines(), 5000, true); },
              ::testing::ThrowsMessage<InputError>(AllOf(HasSubstr("that it would be learnt from have"),
                                                         HasSubstr("KiB"), Not(HasSubstr("or more text")))));
}

TEST(SentencePiece, EndsDocumentsAsAskedFor) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  const std::string model = train_bpe_tokenizer(lines(), 300);
  EXPECT_EQ(parse_sentencepiece_tokenizer(model, "m", "")->end_of_document_text(), "</s>");
  EXPECT_EQ(parse_sentencepiece_tokenizer(model, "m", "<unk>")->end_of_document(), 0);
  EXPECT_THROW(parse_sentencepiece_tokenizer(model, "m", "<none>"), InputError);
  EXPECT_EQ(make_tokenizer({"sentencepiece", model, R"({"eos_token": "<unk>"})", ""}, "m")->end_of_document(), 0);
  EXPECT_THROW(make_tokenizer({"sentencepiece", model, R"({"eos_token": "<none>"})", ""}, "m"), InputError);
}

TEST(HuggingFaceFiles, SayWhatTheModelSays) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  const HuggingFaceFiles files = hugging_face_files({"bpe", train_bpe_tokenizer(lines(), 300), "", ""}, "m");
  const auto json = nlohmann::json::parse(files.tokenizer);
  EXPECT_EQ(json["model"]["type"], "BPE");
  EXPECT_EQ(json["model"]["vocab"].size(), 300u);
  EXPECT_EQ(json["model"]["byte_fallback"], true);
  EXPECT_EQ(json["normalizer"]["type"], "Replace");
  for (const auto& merge : json["model"]["merges"]) {
    std::string joined = merge;
    joined.erase(joined.find(' '), 1);
    EXPECT_TRUE(json["model"]["vocab"].contains(joined)) << joined;
  }
  EXPECT_EQ(nlohmann::json::parse(files.tokenizer_config)["eos_token"], "</s>");
  EXPECT_EQ(nlohmann::json::parse(files.special_tokens_map)["eos_token"], "</s>");
}

// The exported files, read again, give the same tokens as the model.
void expect_same_tokens(const std::string& bytes, const std::vector<std::string>& texts) {
  const auto tokens_of = [](const Tokenizer& tokenizer, const std::string& text) {
    std::vector<int32_t> tokens;
    tokenizer.encode(text, tokens);
    return tokens;
  };
  const TokenizerModel model{"sentencepiece", bytes, "", ""};
  const HuggingFaceFiles files = hugging_face_files(model, "m");
  const auto ours = make_tokenizer(model, "m");
  const auto theirs = make_tokenizer({"json", files.tokenizer, files.tokenizer_config, ""}, "j");
  for (const std::string& text : texts)
    EXPECT_EQ(tokens_of(*ours, text), tokens_of(*theirs, text)) << '"' << text << '"';
}

TEST(HuggingFaceFiles, BlanksAreStrippedAsTheModelDoes) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  const std::vector<std::string> texts = {"ab cd", "  ab   cd  ", "\tab\n",  "ab\u00a0",  "\u3000ab",
                                          " ",     "\n",          "\u2581",  "ab\u2581 ", "\u2581ab",
                                          " \nab", "ab \n ",      "ab\n cd", "",          "a\n  \n\u2581b"};
  const std::string model = train_bpe_tokenizer(lines(), 300);
  expect_same_tokens(model, texts);
  const std::string stripping = model + field(3, field(4, 1));
  expect_same_tokens(stripping, texts);
  expect_same_tokens(stripping + field(3, field(3, 0)), texts);  // without a blank before a text
}

TEST(HuggingFaceFiles, SymbolsAreFoundWhereTheModelFindsThem) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  const std::vector<std::string> texts = {"ab @@ cd",   " @@",     "  @@ab", "ab@@",
                                          "a @@  @@ b", "a b~  c", "  a",    "\u2581@@"};
  std::string model = train_bpe_tokenizer(lines(), 300);
  for (const char* symbol : {"@@", "\u2581\u2581", "b ", "~"}) model += field(1, field(1, symbol) + field(3, 4));
  expect_same_tokens(model, texts);
  expect_same_tokens(model + field(3, field(4, 1)), texts);
  expect_same_tokens(model + field(3, field(3, 0)), texts);
}

TEST(HuggingFaceFiles, BytesAreAVocabularyToo) {
  const auto json = nlohmann::json::parse(hugging_face_files({}, "m").tokenizer);
  EXPECT_EQ(json["model"]["vocab"].size(), 256u);
  EXPECT_EQ(json["model"]["vocab"]["Ġ"], 32);
  EXPECT_EQ(json["model"]["vocab"]["<|endoftext|>"], 0);
}

}  // namespace
}  // namespace gyre
