// tokenizer.json: what its parts do, that cuts, threads and caches do not change tokens, and that what is not supported
// is named.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/random.h"
#include "gyre/tokenizers/hugging_face_files.h"
#include "gyre/tokenizers/json/merges.h"
#include "gyre/tokenizers/tokenizer_model.h"
#include "support/source_directory.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Json file(const std::string& name) {
  return Json::parse(read_file(testing_support::source_directory() / "tests/fuzz/corpus/tokenizer_json" / name));
}
std::unique_ptr<Tokenizer> parse(const Json& json, const std::string& config = "", const std::string& end = "") {
  return make_tokenizer({"json", json.dump(), config, end}, "t");
}
std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> tokens;
  tokenizer.encode(text, tokens);
  return tokens;
}
std::string complaint(const Json& json, const std::string& config = "") {
  try {
    parse(json, config);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const std::string kHard =
    "It'S  a text,\n\n  more texte\u0301 in\r\n 12345 \u00a0\u3000x <|endoftext|> 漢字 \xf0\x9f\x98\x80\xe2\x80\x8d "
    "tex\tt    end";

TEST(TokenizerJson, MergesTheBestPairFirstAndTheLeftmost) {
  Merges merges(4);
  merges.add(1, 1, 1, 2);  // aa
  merges.add(2, 1, 2, 3);  // aaa
  merges.add(1, 9, 0, 4);  // a and 9
  MergeScratch scratch;
  std::vector<int32_t> ids = {1, 1, 1, 1, 9};
  merges.apply(ids, scratch);
  EXPECT_THAT(ids, ElementsAre(3, 4));
}

TEST(TokenizerJson, LongWordsMergeAsShortOnesDo) {
  // Reference: greedy merging that scans all pairs each time. Both implementations must equal it.
  RandomStream stream(1, StreamPurpose::Test, 0);
  std::map<std::pair<int32_t, int32_t>, std::pair<uint32_t, int32_t>> table;
  Merges merges(40);
  for (uint32_t rank = 0; rank < 40; ++rank) {
    const auto left = static_cast<int32_t>(stream.below(4 + rank)),
               right = static_cast<int32_t>(stream.below(4 + rank));
    if (!table.emplace(std::pair(left, right), std::pair(rank, static_cast<int32_t>(4 + rank))).second) continue;
    merges.add(left, right, rank, static_cast<int32_t>(4 + rank));
  }
  MergeScratch scratch;
  for (size_t length : {2, 5, 47, 48, 49, 120, 600}) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(stream.below(4)));
    std::vector<int32_t> expected = ids;
    for (;;) {
      size_t best = expected.size();
      for (size_t i = 0; i + 1 < expected.size(); ++i) {
        const auto found = table.find({expected[i], expected[i + 1]});
        if (found == table.end()) continue;
        if (best == expected.size() || found->second.first < table.at({expected[best], expected[best + 1]}).first)
          best = i;
      }
      if (best == expected.size()) break;
      expected[best] = table.at({expected[best], expected[best + 1]}).second;
      expected.erase(expected.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    merges.apply(ids, scratch);
    EXPECT_EQ(ids, expected) << length;
  }
}

TEST(TokenizerJson, ByteLevelGivesTheTextBack) {
  Json json = file("byte_level");
  json["normalizer"] = nullptr;
  const auto tokenizer = parse(json);
  EXPECT_EQ(tokenizer->vocabulary_size(), 261);
  EXPECT_THAT(encode(*tokenizer, " tex te"), ElementsAre(257, 258, 259));
  EXPECT_THAT(encode(*tokenizer, "<|endoftext|>in"), ElementsAre(260, 256));
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, kHard)), kHard);
  EXPECT_EQ(tokenizer->end_of_document(), 260);
}

TEST(TokenizerJson, NormalizesWhereItSaysSo) {
  const auto tokenizer = parse(file("byte_level"));
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "e\u0301")), "\u00e9");
}

TEST(TokenizerJson, WordPiece) {
  const auto tokenizer = parse(file("word_piece"));
  EXPECT_THAT(encode(*tokenizer, "A T\u00c9XTt, line"), ElementsAre(2, 3, 4, 0, 5, 6));
  EXPECT_THAT(encode(*tokenizer, "textx"), ElementsAre(0));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{2, 3, 4}), "a textt");
  EXPECT_EQ(tokenizer->end_of_document_text(), "[SEP]");
}

TEST(TokenizerJson, SentencePieceStyle) {
  const auto tokenizer = parse(file("metaspace"));
  EXPECT_THAT(encode(*tokenizer, "a a\u00e9\u6f22"), ElementsAre(4, 4, 5, 6, 0));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{4, 4, 5, 6}), "a a\u00e9");
  std::vector<int32_t> rest;
  tokenizer->encode_rest(" a", rest);
  EXPECT_THAT(rest, ElementsAre(4));
}

// BPE of characters, with words that are in the vocabulary as single tokens.
Json words_of(const Json& vocabulary, const Json& merges = Json::array()) {
  return {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}, {"ignore_merges", true}}}};
}

TEST(TokenizerJson, WhitespaceSplitsNoWordAtItsMarksAndJoiners) {
  Json json =
      words_of({{"</s>", 0}, {"\u0645\u06cc\u200c\u062e", 1}, {"x", 2}, {"\u00b2", 3}, {"\u24b6b", 4}, {"!", 5}});
  json["pre_tokenizer"] = {{"type", "Whitespace"}};
  EXPECT_THAT(encode(*parse(json), "\u0645\u06cc\u200c\u062e x\u00b2 \u24b6b!"), ElementsAre(1, 2, 3, 4, 5));
}

// As the library does it: "first" is what begins where the document begins, whatever is the first word.
TEST(TokenizerJson, MetaspaceMarksOnlyWhatBeginsTheDocument) {
  const Json first = {{"type", "Metaspace"}, {"prepend_scheme", "first"}};
  const auto with = [](const Json& pre_tokenizer, const Json& normalizer = nullptr) {
    Json json = words_of({{"</s>", 0}, {"a", 1}, {"b", 2}, {"\u2581a", 3}, {"\u2581b", 4}});
    json["pre_tokenizer"] = pre_tokenizer;
    json["normalizer"] = normalizer;
    return json;
  };
  const auto behind = [&](const Json& step) { return Json{{"type", "Sequence"}, {"pretokenizers", {step, first}}}; };
  const auto words = parse(with(behind({{"type", "WhitespaceSplit"}})));
  EXPECT_THAT(encode(*words, "a b"), ElementsAre(3, 2));
  EXPECT_THAT(encode(*words, " a b"), ElementsAre(1, 2));
  const auto lower = parse(with(first, {{"type", "Lowercase"}}));
  EXPECT_THAT(encode(*lower, "A B"), ElementsAre(3, 4));
  const Json blank = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  EXPECT_THAT(encode(*parse(with(first, blank)), "a b"), ElementsAre(3, 4));

  EXPECT_THAT(complaint(with(first, {{"type", "Strip"}})), HasSubstr("'first' behind this normalizer"));
  EXPECT_EQ(complaint(with(first, {{"type", "Strip"}, {"strip_left", false}})), "accepted");
  EXPECT_THAT(complaint(with(behind({{"type", "Digits"}}), {{"type", "NFKD"}})), HasSubstr("behind this normalizer"));
  EXPECT_THAT(complaint(with(behind({{"type", "Metaspace"}}))), HasSubstr("'first' behind a Metaspace"));
  Json added = with(first, {{"type", "Lowercase"}});
  added["added_tokens"] = {{{"id", 5}, {"content", "x"}, {"special", false}}};
  EXPECT_THAT(complaint(added), HasSubstr("behind this normalizer"));
}

TEST(TokenizerJson, StripAccentsTakesEveryMark) {
  Json json = words_of({{"</s>", 0}, {"\u0939", 1}, {"\u093f", 2}});
  json["normalizer"] = {{"type", "StripAccents"}};
  EXPECT_THAT(encode(*parse(json), "\u0939\u093f"), ElementsAre(1));
  json["normalizer"] = {{"type", "BertNormalizer"}, {"strip_accents", true}};  // nonspacing marks only
  EXPECT_THAT(encode(*parse(json), "\u0939\u093f"), ElementsAre(1, 2));
}

TEST(TokenizerJson, AnAddedTokenIsFoundAmongTheBlanksThatAnotherTakes) {
  Json json = words_of({{"</s>", 0}, {"x", 1}, {" ", 2}});
  json["added_tokens"] = {{{"id", 3}, {"content", "<a>"}, {"rstrip", true}}, {{"id", 4}, {"content", "\n\n"}}};
  EXPECT_THAT(encode(*parse(json), "<a>  \n\n x"), ElementsAre(3, 4, 2, 1));
  EXPECT_THAT(encode(*parse(json), "x <a>  x"), ElementsAre(1, 2, 3, 1));
}

TEST(TokenizerJson, WhatIsNoTokenAndHasNoUnknownOneGoesBeforeMerges) {
  const Json json = words_of({{"</s>", 0}, {"a", 1}, {"b", 2}, {"ab", 3}}, {"a b"});
  EXPECT_THAT(encode(*parse(json), "a\u2581b"), ElementsAre(3));
}

TEST(TokenizerJson, ANormalizerMayNotMakeATextTooLong) {
  Json json = words_of({{"</s>", 0}, {"a", 1}, {"b", 2}});
  const auto steps = [&](int count, size_t length) {
    const Json step = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(length, 'a')}};
    json["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::vector<Json>(static_cast<size_t>(count), step)}};
    return parse(json);
  };
  const std::string text(10'000, 'a');
  EXPECT_EQ(encode(*steps(2, 8), text).size(), 640'000u);
  for (const auto& [count, length] : {std::pair<int, size_t>{3, 8}, {12, 2}, {1, 2'000}}) {
    try {
      encode(*steps(count, length), text);
      FAIL() << "accepted";
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()), "t: its normalizer makes a text of 10000 bytes more than 64 times as long");
    }
  }
}

TEST(TokenizerJson, CutsAndThreadsDoNotShow) {
  for (const char* name : {"byte_level", "word_piece", "metaspace"}) {
    const auto tokenizer = parse(file(name));
    std::string text;
    for (int i = 0; i < 20; ++i) text += kHard + " text a line\nx ";
    const auto whole = encode(*tokenizer, text);
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 3; ++i) threads.emplace_back([&] { EXPECT_EQ(encode(*tokenizer, text), whole); });
    }
    size_t cuts = 0;
    for (size_t n = 1; n < 900; ++n) {
      const size_t at = tokenizer->cut(std::string_view(text).substr(0, n));
      if (at == 0) continue;
      ++cuts;
      auto parts = encode(*tokenizer, std::string_view(text).substr(0, at));
      tokenizer->encode_rest(std::string_view(text).substr(at), parts);
      ASSERT_EQ(parts, whole) << name << " cut at " << at;
    }
    EXPECT_GT(cuts, 100u) << name;
  }
}

TEST(TokenizerJson, BlanksWithinTokensAreNoPlacesToCut) {
  const Json vocabulary = {{"</s>", 0}, {"a", 1}, {" ", 2}, {"a ", 3}, {"a a", 4}, {"\u2581", 5}};
  const auto tokenizer = parse(words_of(vocabulary, Json::array({Json::array({"a", " "}), Json::array({"a ", "a"})})));
  EXPECT_THAT(encode(*tokenizer, "a a"), ElementsAre(4));
  EXPECT_EQ(tokenizer->cut("a a"), 0);
}

// As an exported sentencepiece model has it: without its first blank a part would lack a sign that the whole text has.
TEST(TokenizerJson, BlanksThatAreStrippedFromAPartAreNoPlacesToCut) {
  Json json = words_of({{"</s>", 0}, {"a", 1}, {"\u2581", 2}, {"\u2581a", 3}}, {"\u2581 a"});
  const Json strip = {{"type", "Replace"}, {"pattern", {{"Regex", "\\A +"}}}, {"content", ""}};
  const Json prepend = {{"type", "Prepend"}, {"prepend", "\u2581"}};
  const Json signs = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  for (const auto& [steps, at] : {std::pair<Json, size_t>{{prepend, signs}, 3}, {{strip, prepend, signs}, 0}}) {
    json["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    const auto tokenizer = parse(json);
    EXPECT_THAT(encode(*tokenizer, "a a a"), ElementsAre(3, 3, 3));
    EXPECT_EQ(tokenizer->cut("a a a"), at);
  }
}

TEST(TokenizerJson, EndsDocumentsByConfigurationOrFlag) {
  const Json json = file("byte_level");
  EXPECT_EQ(parse(json, R"({"eos_token": "in"})")->end_of_document(), 256);
  EXPECT_EQ(parse(json, R"({"eos_token": {"content": "ex"}})")->end_of_document(), 258);
  EXPECT_EQ(parse(json, R"({"eos_token": "in"})", "ex")->end_of_document(), 258);
  EXPECT_THROW(parse(json, "", "none"), InputError);
  EXPECT_THROW(parse(json, R"({"eos_token": "none"})"), InputError);
  EXPECT_THAT(complaint(json, "[]"), HasSubstr("the tokenizer_config.json beside t: is no JSON object"));
}

TEST(TokenizerJson, RefusesByName) {
  const auto changed = [](const char* pointer, const Json& value) {
    Json json = file("byte_level");
    json[Json::json_pointer(pointer)] = value;
    return complaint(json);
  };
  EXPECT_THAT(changed("/model/type", "WordLevel"), HasSubstr("'WordLevel'"));
  EXPECT_THAT(changed("/model/type", "Unigram"), HasSubstr("sentencepiece model"));
  EXPECT_THAT(changed("/model/dropout", 0.1), HasSubstr("'dropout'"));
  EXPECT_THAT(changed("/model/end_of_word_suffix", "</w>"), HasSubstr("'end_of_word_suffix'"));
  EXPECT_THAT(changed("/model/merges/0", "i nothing"), HasSubstr("'nothing', which is not in the vocabulary"));
  EXPECT_THAT(changed("/model/merges/0", "i n n"), HasSubstr("not a pair of tokens"));
  EXPECT_THAT(changed("/model/vocab/in", -1), HasSubstr("the token 'in' has no number"));
  EXPECT_THAT(changed("/model/vocab", {{"a", 1}, {"b", 1}, {"c", 2}}),
              HasSubstr("the tokens 'a' and 'b' have the same number, 1"));
  EXPECT_THAT(changed("/normalizer/type", "Nmt"), HasSubstr("normalizer: the type 'Nmt'"));
  EXPECT_THAT(changed("/pre_tokenizer/pretokenizers/0/type", "UnicodeScripts"), HasSubstr("'UnicodeScripts'"));
  EXPECT_THAT(changed("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a"), HasSubstr("is not understood"));
  EXPECT_THAT(changed("/pre_tokenizer/pretokenizers/0/pattern/Regex", "[a&&b]"), HasSubstr("'&&'"));
  EXPECT_THAT(changed("/pre_tokenizer/pretokenizers/0/pattern/Regex", "a*"), HasSubstr("can match nothing"));
  EXPECT_THAT(changed("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "__"}}),
              HasSubstr("no single character"));
  const Json nothing = {{"type", "Replace"}, {"pattern", {{"Regex", "a*"}}}, {"content", "-"}};
  EXPECT_THAT(changed("/normalizer", nothing), HasSubstr("normalizer: 'pattern' can match nothing"));
  EXPECT_THAT(complaint(Json::object()), HasSubstr("no 'model'"));
  EXPECT_THAT(changed("/added_tokens/0/id", 1e15), HasSubstr("has no number"));
}

// Hugging Face's library numbers added tokens by itself.
TEST(TokenizerJson, AddedTokensHaveTheNumbersThatFollow) {
  const auto with = [](const std::vector<std::pair<int, std::string>>& added, int last = 2) {
    Json json = words_of({{"</s>", 0}, {"a", 1}, {"b", last}});
    for (const auto& [id, content] : added) json["added_tokens"].push_back({{"id", id}, {"content", content}});
    return complaint(json);
  };
  EXPECT_EQ(with({{0, "</s>"}, {3, "x"}, {1, "a"}, {4, "y"}}), "accepted");
  EXPECT_THAT(with({{4, "x"}}), HasSubstr("added_tokens: 'x' has the number 4, and 3 is the next one"));
  EXPECT_THAT(with({{1, "x"}}), HasSubstr("'x' has the number 1, and 3 is the next one"));
  EXPECT_THAT(with({{4, "y"}, {3, "x"}}), HasSubstr("'y' has the number 4, and 3 is the next one"));
  EXPECT_THAT(with({{3, "a"}}), HasSubstr("'a' has the number 3, and the vocabulary gives it 1"));
  EXPECT_THAT(with({{3, "x"}, {3, "x"}}), HasSubstr("'x' is there twice"));
  EXPECT_EQ(with({{3, "x"}, {4, "y"}}, 7), "accepted");
  EXPECT_THAT(with({{3, "x"}}, 3), HasSubstr("'x' has the number 3, which a token of the vocabulary has"));
}

TEST(TokenizerJson, IsFoundInDirectories) {
  const testing_support::TemporaryDirectory temporary;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((temporary.path() / name).parent_path());
    std::ofstream(temporary.path() / name) << text;
  };
  const Json json = file("byte_level");
  std::string merges = "#version: 0.2\n";
  merges += "i n\n\xc4\xa0 t\ne x\n\xc4\xa0t e\n";
  write("gpt2/vocab.json", json["model"]["vocab"].dump());
  write("gpt2/merges.txt", merges);
  const auto gpt2 = make_tokenizer(read_tokenizer(temporary.path() / "gpt2"), "t");
  EXPECT_THAT(encode(*gpt2, " tex<|endoftext|>"), ElementsAre(257, 258, 260));
  write("bert/vocab.txt", "[PAD]\n[UNK]\n[SEP]\na\n##b\nA\n");
  EXPECT_THAT(encode(*make_tokenizer(read_tokenizer(temporary.path() / "bert"), "t"), "A ab[SEP]"),
              ElementsAre(3, 3, 4, 2));
  write("bert/tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_THAT(encode(*make_tokenizer(read_tokenizer(temporary.path() / "bert"), "t"), "A ab"), ElementsAre(5, 3, 4));
  for (const std::string file : {"gpt2/vocab.json", "gpt2/merges.txt", "bert/vocab.txt"}) {
    const auto path = temporary.path() / file;
    EXPECT_EQ(read_tokenizer(path).content, read_tokenizer(path.parent_path()).content) << file;
    EXPECT_EQ(read_tokenizer(path).config, read_tokenizer(path.parent_path()).config) << file;
  }
  write("alone/vocab.json", "{}");
  try {
    read_tokenizer(temporary.path() / "alone/vocab.json");
    ADD_FAILURE() << "its merges are missing";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("alone/merges.txt: ")) << "and not only that it is no tokenizer";
  }
  write("empty/other", "");
  EXPECT_THROW(read_tokenizer(temporary.path() / "empty"), InputError);
  write("text.txt", "plain text");
  EXPECT_THROW(make_tokenizer(read_tokenizer(temporary.path() / "text.txt"), "t"), InputError);
}

TEST(HuggingFaceFiles, GivesAJsonBackAsItCame) {
  const std::string json = file("byte_level").dump(), config = R"({"eos_token":"<|endoftext|>","chat_template":"x"})";
  const HuggingFaceFiles same = hugging_face_files({"json", json, config, ""}, "t");
  EXPECT_EQ(same.tokenizer, json);
  EXPECT_EQ(same.tokenizer_config, config);
  const Json other = Json::parse(hugging_face_files({"json", json, config, "in"}, "t").tokenizer_config);
  EXPECT_EQ(other["eos_token"], "in");
  EXPECT_EQ(other["chat_template"], "x");
}

// What a run keeps has no post-processor, also so that data prepared with an earlier gyre count as the same.
TEST(HuggingFaceFiles, ABertVocabularyGetsItsSpecialTokens) {
  const testing_support::TemporaryDirectory temporary;
  const auto exported = [&](const std::string& vocabulary, const std::string& config) {
    std::ofstream(temporary.path() / "vocab.txt") << vocabulary;
    std::ofstream(temporary.path() / "tokenizer_config.json") << config;
    const TokenizerModel model = read_tokenizer(temporary.path());
    EXPECT_TRUE(Json::parse(model.content)["post_processor"].is_null());
    return hugging_face_files(model, "t");
  };
  const HuggingFaceFiles files = exported("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", R"({"cls_token": "a"})");
  const Json post_processor = Json::parse(files.tokenizer)["post_processor"];
  EXPECT_EQ(post_processor["type"], "TemplateProcessing");
  EXPECT_EQ(post_processor["single"],
            Json::parse(R"([{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                            {"SpecialToken": {"id": "[SEP]", "type_id": 0}}])"));
  EXPECT_EQ(post_processor["pair"].size(), 5u);
  EXPECT_EQ(post_processor["pair"][4], Json::parse(R"({"SpecialToken": {"id": "[SEP]", "type_id": 1}})"));
  EXPECT_EQ(post_processor["special_tokens"]["[SEP]"],
            Json::parse(R"({"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]})"));
  EXPECT_EQ(Json::parse(files.tokenizer_config), Json::parse(R"({"cls_token": "a", "eos_token": "[SEP]",
      "pad_token": "[PAD]", "sep_token": "[SEP]", "unk_token": "[UNK]"})"));
  EXPECT_EQ(Json::parse(files.special_tokens_map), Json::parse(files.tokenizer_config));
  EXPECT_EQ(hugging_face_files({"json", files.tokenizer, files.tokenizer_config, ""}, "t").tokenizer, files.tokenizer);
  EXPECT_EQ(encode(*parse(Json::parse(files.tokenizer)), "a"), std::vector<int32_t>{4});

  const HuggingFaceFiles without = exported("[UNK]\n[SEP]\na\n", "");
  EXPECT_TRUE(Json::parse(without.tokenizer)["post_processor"].is_null());
  EXPECT_EQ(Json::parse(without.tokenizer_config)["sep_token"], "[SEP]");
  EXPECT_FALSE(Json::parse(without.tokenizer_config).contains("cls_token"));
}

}  // namespace
}  // namespace gyre
