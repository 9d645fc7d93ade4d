// Which tokens are in which microbatch: by seed and number alone, every token in reach, mixtures, epochs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "data/fixture.h"
#include "gyre/batches/mixture.h"
#include "gyre/batches/shuffle.h"
#include "gyre/batches/token_batches.h"
#include "support/token_formats.h"

namespace gyre {
namespace {

using testing_support::write_llmc;
using TokenBatches = DataTest;
using Tokens = std::vector<int64_t>;

TEST(Mixture, KeepsItsWeightsAndGoesThroughEachSource) {
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

TEST(Mixture, GoesOnInEachSourceWhenItsWeightsChange) {
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

TEST(Shuffle, HasEveryPlaceOnce) {
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

TEST_F(TokenBatches, DependOnSeedAndIndexAlone) {
  PrepareOptions o = options({write("text", plain_text(2000))});
  prepare(o);
  const Dataset dataset = open_data(o.out);
  const DrawnTokenBatches batches(dataset.train(), 3, 16, 5, 256), other(dataset.train(), 3, 16, 6, 256);
  std::vector<Batch> forward;
  for (int64_t m = 0; m < 20; ++m) forward.push_back(batches.batch(m));
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int64_t m = 19; m >= 0; --m) {
        const Batch batch = batches.batch(m);
        EXPECT_TRUE(batch.inputs.equal(forward[static_cast<size_t>(m)].inputs));
        EXPECT_TRUE(batch.targets.equal(forward[static_cast<size_t>(m)].targets));
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(other.batch(0).inputs.equal(forward[0].inputs));
  EXPECT_FALSE(forward[1].inputs.equal(forward[0].inputs));
  EXPECT_TRUE(forward[0].inputs.narrow(1, 1, 15).equal(forward[0].targets.narrow(1, 0, 15)));
}

TEST_F(TokenBatches, ReachEveryTokenAndNoFurther) {
  TokenFileWriter writer(directory_ / "few.bin", 256);
  const std::vector<int32_t> few = {10, 11, 12, 13, 14, 15};
  writer.append(few);
  writer.finish();
  const std::vector<WeightedTokens> file = {{"", 1, tokens_of(directory_ / "few.bin")}};
  std::set<int64_t> beginnings;
  const DrawnTokenBatches batches(file, 4, 3, 1, 256);
  for (int64_t m = 0; m < 50; ++m) {
    const Batch batch = batches.batch(m);
    for (int64_t s = 0; s < 4; ++s) beginnings.insert(batch.inputs[s][0].item<int64_t>());
  }
  EXPECT_EQ(beginnings, (std::set<int64_t>{10, 11, 12}));
  EXPECT_THROW(DrawnTokenBatches(file, 4, 6, 1, 256), InputError);

  const SequentialTokenBatches windows(file, 8, 2, 256, 100);
  EXPECT_EQ(windows.count(), 1);
  EXPECT_TRUE(windows.batch(0).inputs.equal(at::tensor({10, 11, 12, 13}, at::kLong).view({2, 2})));
  EXPECT_TRUE(windows.batch(0).targets.equal(at::tensor({11, 12, 13, 14}, at::kLong).view({2, 2})));
}

TEST_F(TokenBatches, OfEpochsHaveEverySequenceOnceAndRandomOrderIsThePlainOne) {
  Tokens numbers(1001);
  std::iota(numbers.begin(), numbers.end(), 0);
  write_llmc(directory_ / "a.bin", numbers);
  write_llmc(directory_ / "b.bin", numbers);
  const TokenSequence a = tokens_of(directory_ / "a.bin"), b = tokens_of(directory_ / "b.bin");
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
  const SequentialTokenBatches evaluation(two, 5, 10, 2000, 100);
  EXPECT_EQ(evaluation.count(), 20 + 7);
  const SequentialTokenBatches few(two, 5, 10, 2000, 6);
  EXPECT_EQ(few.count(), 6);
  for (int64_t m = 0; m < 6; ++m) EXPECT_TRUE(few.batch(m).inputs.equal(evaluation.batch(m).inputs));
  const SequentialTokenBatches alone(one, 5, 10, 2000, 100);
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

TEST_F(TokenBatches, OfSessionsWithOtherMicrobatchesGoOnWithTheNextSequence) {
  Tokens numbers(2003);
  std::iota(numbers.begin(), numbers.end(), 0);
  write_llmc(directory_ / "a.bin", Tokens(numbers.begin(), numbers.begin() + 1002));
  write_llmc(directory_ / "b.bin", Tokens(numbers.begin() + 1002, numbers.end()));
  const TokenSequence a = tokens_of(directory_ / "a.bin"), b = tokens_of(directory_ / "b.bin");
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
