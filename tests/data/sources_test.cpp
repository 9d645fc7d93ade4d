// Token files of other programs: the same tokens in every format; formats recognised; damaged, mixed or foreign files
// refused.
#include "gyre/data/sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "data/fixture.h"
#include "gyre/core/files.h"
#include "support/faulty_files.h"
#include "support/token_formats.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::write_llmc;
using testing_support::write_megatron;
using testing_support::write_plain;
using Tokens = std::vector<int64_t>;

Tokens drawn_tokens(size_t count, int64_t vocabulary, uint64_t seed = 0) {
  RandomStream stream(seed, StreamPurpose::Test, 3);
  Tokens tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int64_t>(stream.below(static_cast<uint64_t>(vocabulary))));
  return tokens;
}

class SourcesTest : public DataTest {
 protected:
  std::string place(const std::string& name) {
    fs::create_directories((directory_ / name).parent_path());
    return directory_ / name;
  }
  static DataSettings of(const std::string& tokens, int64_t vocabulary = 500) {
    DataSettings settings;
    settings.tokens = tokens;
    settings.vocabulary = vocabulary;
    return settings;
  }
  static std::string refused(const DataSettings& settings) {
    try {
      const Dataset dataset = Dataset::open(settings);
      dataset.train();
      dataset.val();
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }
  // All tokens of all sources.
  Tokens all(const std::vector<WeightedTokens>& sources) {
    Tokens all;
    for (const WeightedTokens& source : sources) {
      const Tokens own = tokens(source.tokens);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  void expect(const DataSettings& settings, const Tokens& train, const Tokens& val) {
    const Dataset dataset = Dataset::open(settings);
    EXPECT_EQ(all(dataset.train()), train);
    EXPECT_EQ(all(dataset.val()), val);
    EXPECT_EQ(dataset.train_tokens(), static_cast<int64_t>(train.size()));
  }
};

TEST_F(SourcesTest, EveryFormatHasTheSameTokens) {
  const Tokens train = drawn_tokens(1000, 500), val = drawn_tokens(300, 500, 1);
  write_llmc(place("narrow/tiny_train.bin"), train);
  write_llmc(place("narrow/tiny_val.bin"), val);
  expect(of(directory_ / "narrow"), train, val);
  write_llmc(place("wide/a_train_000001.bin"), Tokens(train.begin(), train.begin() + 1), true);
  write_llmc(place("wide/a_train_000002.bin"), Tokens(train.begin() + 1, train.begin() + 700), false);
  write_llmc(place("wide/a_train_000003.bin"), {}, true);
  write_llmc(place("wide/a_train_000010.bin"), Tokens(train.begin() + 700, train.end()), true);
  write_llmc(place("wide/a_val_000000.bin"), val, true);
  expect(of(directory_ / "wide"), train, val);
  expect(of(directory_ / "wide/*.bin"), train, val);
  write_plain<uint16_t>(place("nano/train.bin"), train);
  write_plain<uint16_t>(place("nano/val.bin"), val);
  expect(of(directory_ / "nano"), train, val);
  write_megatron<uint16_t>(place("megatron/text_train"), train, {400, 0, 600});
  write_megatron<uint16_t>(place("megatron/text_valid"), val, {300});
  expect(of(directory_ / "megatron"), train, val);
  for (const char* path : {"narrow/tiny_train.bin", "nano/train.bin", "megatron/text_train", "megatron/text_train.bin",
                           "megatron/text_train.idx", "megatron/*_train*", "wide/*_train_*.bin"}) {
    DataSettings settings = of(directory_ / path);
    settings.val_tokens = directory_ / "narrow";  // its validation files
    expect(settings, train, val);
    // The end of the training tokens, if nothing else is given.
    settings.val_tokens = "";
    settings.val_fraction = 0.25;
    expect(settings, Tokens(train.begin(), train.begin() + 750), Tokens(train.begin() + 750, train.end()));
  }
}

TEST_F(SourcesTest, EveryWholeNumberOfMegatronsIsRead) {
  const Tokens tokens = drawn_tokens(200, 100);
  const auto same = [&](auto number) {
    write_megatron<decltype(number)>(place("data/all"), tokens, {120, 80});
    DataSettings settings = of(directory_ / "data/all");
    settings.val_fraction = 0;
    expect(settings, tokens, {});
  };
  same(uint8_t{}), same(int8_t{}), same(int16_t{}), same(int32_t{}), same(int64_t{}), same(uint16_t{});
}

TEST_F(SourcesTest, TokensOutsideTheVocabularyAreNamedWithTheirPlace) {
  Tokens tokens = drawn_tokens(600'000, 500);
  tokens[555'555] = 777;
  tokens[555'556] = 888;
  write_llmc(place("a/train.bin"), tokens);
  EXPECT_THAT(refused(of(directory_ / "a")),
              HasSubstr("a/train.bin: token 777 at 555555 is outside the vocabulary of 500"));
  write_plain<uint16_t>(place("b/train.bin"), tokens);
  EXPECT_THAT(refused(of(directory_ / "b")), HasSubstr("b/train.bin: token 777 at 555555 is outside"));
  tokens[3] = -1;
  write_megatron<int32_t>(place("c/all"), tokens, {600'000});
  EXPECT_THAT(refused(of(directory_ / "c/all")), HasSubstr("c/all.bin: token -1 at 3 is outside"));
  EXPECT_THAT(refused(of(directory_ / "c/all", 0)), HasSubstr("set [data] tokenizer, or [data] vocabulary"));
  tokens[3] = 0;
  write_megatron<int32_t>(place("c/all"), tokens, {600'000});
  EXPECT_EQ(refused(of(directory_ / "c/all", 1000)), "accepted");
}

TEST_F(SourcesTest, DamagedMixedAndForeignFilesAreRefused) {
  const Tokens tokens = drawn_tokens(100, 500);
  const auto cut = [&](const std::string& file, size_t less) {
    const std::string content = read_file(directory_ / file);
    std::ofstream(directory_ / file, std::ios::binary) << content.substr(0, content.size() - less);
  };
  write_llmc(place("cut/a_train_1.bin"), tokens);
  cut("cut/a_train_1.bin", 1);
  EXPECT_THAT(refused(of(directory_ / "cut")), AllOf(HasSubstr("a_train_1.bin: is truncated"), HasSubstr("1223")));
  write_plain<uint16_t>(place("odd/train.bin"), tokens);
  cut("odd/train.bin", 1);
  EXPECT_THAT(refused(of(directory_ / "odd")), HasSubstr("train.bin: has 199 bytes"));
  write_megatron<uint16_t>(place("short/all"), tokens, {100});
  cut("short/all.bin", 2);
  EXPECT_THAT(refused(of(directory_ / "short")),
              HasSubstr("all.idx: has sequences of at least 200 bytes, and the .bin beside it has 198"));
  write_megatron<uint16_t>(place("short/all"), tokens, {100});
  cut("short/all.idx", 3);
  EXPECT_THAT(refused(of(directory_ / "short")), HasSubstr("all.idx: is truncated"));
  fs::remove(directory_ / "short/all.bin");
  EXPECT_THAT(refused(of(directory_ / "short")), HasSubstr("all.idx: has no all.bin beside it"));
  // Megatron's reader refuses them too.
  const auto documents = [&](const std::vector<int64_t>& firsts) {
    write_megatron<uint16_t>(place("documents/all"), tokens, {60, 40}, firsts);
    return refused(of(directory_ / "documents/all"));
  };
  EXPECT_EQ(documents({0, 2}), "accepted");
  EXPECT_EQ(documents({0, 0, 1, 1, 2}), "accepted") << "documents may be empty";
  EXPECT_THAT(documents({0, 5, 99}), HasSubstr("all.idx: its documents end at sequence 99, and it has 2"));
  EXPECT_THAT(documents({0, 1}), HasSubstr("all.idx: its documents end at sequence 1, and it has 2"));
  EXPECT_THAT(documents({0, 2, 1}), HasSubstr("document 2 begins at sequence 1, and the one before it at 2"));
  EXPECT_THAT(documents({1, 2}), HasSubstr("document 0 begins at sequence 1, and the first one must begin at 0"));
  EXPECT_THAT(documents({}), HasSubstr("all.idx: its documents end at sequence 0, and it has 2"));
  write_megatron<float>(place("floats/all"), tokens, {100});
  EXPECT_THAT(refused(of(directory_ / "floats")), HasSubstr("all.idx: says that its numbers have type 7"));

  write_llmc(place("mixed/a_train.bin"), tokens);
  write_megatron<uint16_t>(place("mixed/b_train"), tokens, {100});
  EXPECT_THAT(refused(of(directory_ / "mixed")),
              HasSubstr("mixed: has token files of llm.c (a_train.bin) and of Megatron (b_train.bin)"));
  EXPECT_EQ(refused(of(directory_ / "mixed/a_train.bin")), "accepted");
  write("notes.bin", "words");
  EXPECT_THAT(refused(of(directory_ / "notes.bin")), HasSubstr("notes.bin: is not a token file"));
  fs::create_directories(directory_ / "nested/a.bin");
  EXPECT_THAT(refused(of(directory_ / "nested")), HasSubstr("a.bin: is not a regular file"));
  EXPECT_THAT(refused(of(directory_ / "missing")), HasSubstr("gyre prepare"));
  EXPECT_THAT(refused(of(directory_ / "missing*.bin")), HasSubstr("no file has a name that fits this pattern"));
  write_llmc(place("named/a_train.bin"), tokens);
  write_llmc(place("named/rest.bin"), tokens);
  EXPECT_THAT(refused(of(directory_ / "named")), HasSubstr("rest.bin: its name has neither train nor val"));
  write_llmc(place("val/a_val_1.bin"), tokens);
  write_llmc(place("val/a_val_2.bin"), tokens);
  EXPECT_THAT(refused(of(directory_ / "val")), HasSubstr("all files are for validation"));
}

TEST_F(SourcesTest, TheIdentityHasEveryFile) {
  const Tokens tokens = drawn_tokens(100, 200);
  write_llmc(place("data/a_train_1.bin"), tokens);
  write_llmc(place("data/a_train_2.bin"), tokens);
  write_llmc(place("data/a_val_1.bin"), tokens);
  prepare(options({write("text", plain_text(300))}));
  const auto names = [](const DataIdentity& identity) {
    std::vector<std::string> names;
    for (const auto& [name, checksum] : identity) names.push_back(name);
    return names;
  };
  const Dataset one = Dataset::open(of(directory_ / "data"));
  EXPECT_THAT(names(one.identity()),
              ::testing::ElementsAre("train/a_train_1.bin", "train/a_train_2.bin", "val/a_val_1.bin"));
  EXPECT_EQ(one.identity().at("val/a_val_1.bin"), file_checksum(directory_ / "data/a_val_1.bin"));
  EXPECT_THAT(names(open_data(directory_ / "tokens").identity()), ::testing::ElementsAre("train.bin", "val.bin"));
  DataSettings mixture;
  mixture.source = {{"web", directory_ / "data", 1, ""}, {"books", directory_ / "tokens", 2, ""}};
  EXPECT_THAT(names(Dataset::open(mixture).identity({DataPart::Train})),
              ::testing::ElementsAre("books/train/train.bin", "web/train/a_train_1.bin", "web/train/a_train_2.bin"));

  // A file that was changed, removed or added makes the data different.
  const DataIdentity begun_with = one.identity();
  const auto complaint = [&](const std::vector<DataPart>& parts) -> std::string {
    try {
      Dataset::open(of(directory_ / "data")).check_identity(begun_with, parts);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(complaint({DataPart::Train, DataPart::Val}), "accepted");
  write_llmc(place("data/a_train_3.bin"), tokens);
  EXPECT_THAT(complaint({DataPart::Train}), HasSubstr("a_train_3.bin"));
  EXPECT_EQ(complaint({DataPart::Val}), "accepted");
  fs::remove(directory_ / "data/a_train_3.bin");
  fs::remove(directory_ / "data/a_train_2.bin");
  EXPECT_THAT(complaint({DataPart::Train}), HasSubstr("a_train_2.bin"));
  // Editing a file during a run is noticed.
  const Dataset used = Dataset::open(of(directory_ / "data"));
  used.train();
  used.val();
  EXPECT_NO_THROW(used.check_unchanged());
  write_llmc(directory_ / "data/a_val_1.bin", drawn_tokens(100, 200, 9));
  EXPECT_THROW(used.check_unchanged(), RunError);
}

TEST_F(SourcesTest, AVocabularyThatNobodyStatesIsTheCallers) {
  write_llmc(place("data/a_train_1.bin"), drawn_tokens(100, 200));
  const auto opened = [&](int64_t stated, int64_t if_unstated) {
    const Dataset dataset = Dataset::open(of(directory_ / "data", stated), if_unstated);
    EXPECT_FALSE(dataset.has_own_vocabulary());
    return dataset.vocabulary();
  };
  EXPECT_EQ(opened(0, 300), 300);
  EXPECT_EQ(opened(400, 300), 400);
  EXPECT_THAT(refused(of(directory_ / "data", 0)), HasSubstr("do not say their vocabulary"));
  prepare(options({write("text", plain_text(300))}));
  const Dataset prepared = Dataset::open(of(directory_ / "tokens", 0), 300);
  EXPECT_EQ(prepared.vocabulary(), 256);
  EXPECT_TRUE(prepared.has_own_vocabulary());
}

TEST_F(SourcesTest, FilesOfTheSameNameAreNumbered) {
  // The second and the last are themselves called like numbered ones.
  const std::map<std::string, std::string> files = {{"train/x.bin", "a/x.bin"},
                                                    {"train/x.bin#2", "b/x.bin#2"},
                                                    {"train/x.bin#3", "c/x.bin"},
                                                    {"train/x.bin#4", "d/x.bin"},
                                                    {"train/x.bin#2#2", "e/x.bin#2"}};
  DataIdentity expected;
  for (const auto& [name, file] : files) {
    write_llmc(place(file), drawn_tokens(10, 500, expected.size()));
    expected[name] = file_checksum(directory_ / file);
  }
  EXPECT_EQ(Dataset::open(of(directory_ / "?/x.bin*")).identity({DataPart::Train}), expected);
}

TEST_F(SourcesTest, WhatARunKeepsSaysWhatTheDataIs) {
  write_llmc(place("data/a_train_1.bin"), drawn_tokens(100, 200));
  const Dataset foreign = Dataset::open(of(directory_ / "data"));
  fs::create_directories(directory_ / "kept");
  foreign.write_tokenizer(directory_ / "kept");
  EXPECT_EQ(DatasetMeta::load(directory_ / "kept").checksums, foreign.identity());
  EXPECT_EQ(load_tokenizer(directory_ / "kept"), nullptr);
  prepare(options({write("text", plain_text(300))}));
  DataSettings mixture;
  mixture.source = {{"web", directory_ / "data", 1, ""}, {"books", directory_ / "tokens", 2, ""}};
  const Dataset mixed = Dataset::open(mixture);
  EXPECT_EQ(mixed.vocabulary(), 256);
  mixed.write_tokenizer(directory_ / "kept");
  EXPECT_EQ(DatasetMeta::load(directory_ / "kept").checksums, mixed.identity());
  EXPECT_EQ(load_tokenizer(directory_ / "kept")->vocabulary_size(), 256);
  // Killed at any call, it has said all or nothing: a run that goes on leaves what is there.
  bool struck = true;
  for (int64_t at = 0; struck; ++at) {
    const fs::path killed = directory_ / "killed" / std::to_string(at);
    fs::create_directories(killed);
    FaultyFiles files(at, Fault::Kill);
    try {
      mixed.write_tokenizer(killed, files);
    } catch (const Error&) {
    }
    struck = files.struck();
    if (fs::exists(killed / "meta.json")) {
      EXPECT_EQ(DatasetMeta::load(killed).checksums, mixed.identity()) << "call " << at;
    }
  }
  mixture.vocabulary = 300;
  EXPECT_THAT(refused(mixture), HasSubstr("[data] vocabulary is 300, and"));
  if (!has_sentencepiece()) return;
  PrepareOptions other = options({write("text", plain_text(3000))}, "bpe");
  other.out = directory_ / "other";
  prepare(other);
  mixture.vocabulary = 0;
  mixture.source.push_back({"more", other.out, 1, ""});
  EXPECT_THAT(refused(mixture), HasSubstr("were made with different tokenizers"));
}

TEST_F(SourcesTest, TextPreparedWithTheTokenizerOfOtherTextBelongsToIt) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  PrepareOptions first = options({write("text", plain_text(3000))}, "bpe");
  first.out = directory_ / "first";
  prepare(first);
  PrepareOptions second = options({write("more", plain_text(500))}, first.out.string());
  second.out = directory_ / "second";
  prepare(second);
  DataSettings mixture;
  mixture.source = {{"a", first.out, 1, ""}, {"b", second.out, 1, ""}};
  EXPECT_EQ(refused(mixture), "accepted");
  DataSettings validated;
  validated.tokens = second.out;
  validated.val_tokens = first.out;
  EXPECT_EQ(refused(validated), "accepted");
}

}  // namespace
}  // namespace gyre
