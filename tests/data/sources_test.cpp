// Token files of other programs: the same tokens in every format; formats recognised; damaged, mixed or foreign files
// refused; mixtures.
#include "gyre/data/sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <set>

#include "data/fixture.h"
#include "gyre/batches/mixture.h"
#include "gyre/batches/shuffle.h"
#include "gyre/batches/token_batches.h"
#include "gyre/core/files.h"
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
  EXPECT_THAT(refused(of(directory_ / "missing*.bin")), HasSubstr("gyre prepare"));
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

TEST_F(SourcesTest, MixturesKeepTheirWeightsAndGoThroughEachSource) {
  const Mixture::Weights named = {{"a", 5}, {"b", 3}, {"c", 1.999}, {"d", 1e-9}};
  const Mixture mixture(named, 7), same(named, 7), other(named, 8);
  std::vector<double> weights;
  for (const auto& [name, weight] : named) weights.push_back(weight);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint64_t> counts(weights.size(), 0);
  bool differs = false;
  for (uint64_t sequence = 0; sequence < 3 << 16; ++sequence) {
    const Mixture::Draw draw = mixture.at(sequence);
    ASSERT_EQ(draw.number, counts[draw.source]++) << sequence;  // in order, none twice
    ASSERT_EQ(same.at(sequence).source, draw.source);
    differs = differs || other.at(sequence).source != draw.source;
  }
  EXPECT_TRUE(differs);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(counts[i] % 3, 0u);  // the same number in every pattern
    EXPECT_NEAR(static_cast<double>(counts[i]) / 3, std::max(1.0, weights[i] / all * 65536), 1.01);
  }
}

TEST_F(SourcesTest, MixturesWhoseWeightsChangeGoOnInEachSource) {
  RandomStream draw(3, StreamPurpose::Test, 8);
  for (int run = 0; run < 5; ++run) {
    Mixture::Weights weights;
    MixtureRecord record;
    std::map<std::string, uint64_t> counts;
    int64_t sequences = 0;
    for (int session = 0; session < 8; ++session) {
      // Other weights, or the same: then it is as if the session before had gone on.
      const bool changes = session == 0 || draw.below(2) == 0;
      if (changes) weights = {{"a", 1 + draw.uniform()}, {"b", draw.uniform() / 10}, {"c", 5 * draw.uniform()}};
      const Mixture mixture(weights, 7, record, sequences);
      if (!changes) {
        EXPECT_EQ(mixture.record(), record);
      }
      const Mixture::Weights doubled = {{"a", 2 * weights["a"]}, {"b", 2 * weights["b"]}, {"c", 2 * weights["c"]}};
      EXPECT_EQ(Mixture(doubled, 7, mixture.record(), sequences).record(), mixture.record());
      record = mixture.record();
      EXPECT_EQ(record.since, changes ? sequences : record.since);
      const auto count = static_cast<int64_t>(draw.below(4) == 0 ? 70'000 : draw.below(2000));
      std::map<std::string, int64_t> in_pattern;
      for (const int64_t end = sequences + count; sequences < end; ++sequences) {
        const Mixture::Draw next = mixture.at(static_cast<uint64_t>(sequences));
        const std::string name(1, static_cast<char>('a' + next.source));
        ASSERT_EQ(next.number, counts[name]++) << "sequence " << sequences << " of session " << session;
        if (sequences < record.since + kMixturePattern) ++in_pattern[name];
      }
      if (changes && count >= kMixturePattern) {
        EXPECT_EQ(in_pattern, record.shares);
      }
    }
  }
  const Mixture begun({{"a", 1}, {"b", 1}}, 7);
  EXPECT_EQ(begun.record(), (MixtureRecord{0, {{"a", 32768}, {"b", 32768}}, {{"a", 0}, {"b", 0}}}));
}

TEST_F(SourcesTest, AShuffledOrderHasEveryPlaceOnce) {
  std::set<std::vector<uint64_t>> orders;
  for (const uint64_t size : {1, 2, 3, 4, 5, 17, 64, 65, 1000, 5000}) {
    for (const uint64_t epoch : {0, 1}) {
      std::vector<uint64_t> order;
      for (uint64_t place = 0; place < size; ++place) order.push_back(shuffled(place, size, 3, epoch, 0));
      EXPECT_TRUE(orders.insert(order).second || size <= 4);
      EXPECT_EQ(std::set<uint64_t>(order.begin(), order.end()).size(), size);
      EXPECT_LT(*std::max_element(order.begin(), order.end()), size);
    }
  }
  // The number at a place is about uniformly distributed over many orders.
  std::vector<int> counts(10, 0);
  for (uint64_t epoch = 0; epoch < 10'000; ++epoch) ++counts[shuffled(3, 10, 5, epoch, 1)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST_F(SourcesTest, EpochsHaveEverySequenceOnceAndRandomOrderIsThePlainOne) {
  Tokens numbers(1001);
  std::iota(numbers.begin(), numbers.end(), 0);
  write_llmc(place("a/all.bin"), numbers);
  write_llmc(place("b/all.bin"), numbers);
  const TokenSequence a = tokens_of(directory_ / "a/all.bin"), b = tokens_of(directory_ / "b/all.bin");
  const std::vector<WeightedTokens> one = {{"", 1, a}}, named = {{"x", 0.3, a}}, two = {{"a", 3, a}, {"b", 1, b}};
  const DrawnTokenBatches epochs(one, 8, 10, 1, 2000, SequenceOrder::Epochs);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int64_t> beginnings, expected;
    for (int64_t i = 0; i < 100; ++i) expected.insert(10 * i);
    for (int64_t q = 100 * epoch; q < 100 * (epoch + 1); ++q) {
      beginnings.insert(epochs.batch(q / 8).inputs[q % 8][0].item<int64_t>());
    }
    EXPECT_EQ(beginnings, expected);
  }
  // One named source gives the same as the unnamed one, whatever its weight.
  for (const SequenceOrder order : {SequenceOrder::Random, SequenceOrder::Epochs}) {
    const DrawnTokenBatches plain(one, 4, 10, 1, 2000, order), single(named, 4, 10, 1, 2000, order);
    for (int64_t m = 0; m < 20; ++m) EXPECT_TRUE(plain.batch(m).inputs.equal(single.batch(m).inputs));
  }
  // Sequences are drawn by their number, whatever the size of microbatches.
  const DrawnTokenBatches fours(two, 4, 10, 1, 2000, SequenceOrder::Epochs),
      twos(two, 2, 10, 1, 2000, SequenceOrder::Epochs);
  for (int64_t m = 0; m < 20; ++m) {
    EXPECT_TRUE(fours.batch(m).inputs.narrow(0, 2, 2).equal(twos.batch(2 * m + 1).inputs));
  }
  // Evaluation takes three batches of the first source for each of the second.
  const SequentialTokenBatches evaluation(two, 5, 10, 2000);
  EXPECT_EQ(evaluation.count(), 20 + 7);
  const SequentialTokenBatches alone(one, 5, 10, 2000);
  EXPECT_EQ(alone.count(), 20);
}

// The first tokens of the sequences of microbatches `first` to `last`, exclusive.
Tokens beginnings(const BatchSource& batches, int64_t first, int64_t last) {
  Tokens tokens;
  for (int64_t m = first; m < last; ++m) {
    const at::Tensor inputs = batches.batch(m).inputs;
    for (int64_t s = 0; s < inputs.size(0); ++s) tokens.push_back(inputs[s][0].item<int64_t>());
  }
  return tokens;
}

TEST_F(SourcesTest, SessionsWithOtherMicrobatchesGoOnWithTheNextSequence) {
  Tokens numbers(2003);
  std::iota(numbers.begin(), numbers.end(), 0);
  write_llmc(place("a/all.bin"), Tokens(numbers.begin(), numbers.begin() + 1002));
  write_llmc(place("b/all.bin"), Tokens(numbers.begin() + 1002, numbers.end()));
  const TokenSequence a = tokens_of(directory_ / "a/all.bin"), b = tokens_of(directory_ / "b/all.bin");
  RandomStream draw(7, StreamPurpose::Test, 5);
  const std::vector<WeightedTokens> one = {{"", 1, a}}, two = {{"a", 3, a}, {"b", 1, b}};
  for (const auto& sources : {one, two}) {
    const auto of = [&](int64_t size, const DataPosition& position) {
      return DrawnTokenBatches(sources, size, 10, 1, 3000, SequenceOrder::Epochs, position);
    };
    const Tokens unbroken = beginnings(of(1, {}), 0, 400);
    for (int run = 0; run < 20; ++run) {
      DataPosition position;
      Tokens used;
      while (position.sequences < 300) {
        const auto size = static_cast<int64_t>(1 + draw.below(9)), count = static_cast<int64_t>(draw.below(12));
        const DrawnTokenBatches session = of(size, position);
        EXPECT_EQ(session.batch(0).inputs.size(0), size);  // some sequences, whatever came before
        const Tokens more = beginnings(session, position.microbatches, position.microbatches + count);
        used.insert(used.end(), more.begin(), more.end());
        position.microbatches += count;
        position.sequences += count * size;
      }
      ASSERT_EQ(used, Tokens(unbroken.begin(), unbroken.begin() + position.sequences));
    }
  }
}

}  // namespace
}  // namespace gyre
