// A segment whose delays or mismatches differ from the schedule's analysis is an error under every executor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "fixture.h"
#include "gyre/core/error.h"
#include "gyre/runtime/reports.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing_support;

using Change = std::function<void(FinalReport::Replica&)>;

// Changes what workers report about the replicas of stage 1, as if they had run something else.
class ChangedReports final : public Transport {
 public:
  ChangedReports(Transport& below, Change change) : below_(below), change_(std::move(change)) {}

  std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) override {
    auto below = below_.sender(id, ends);
    if (id.kind != LinkKind::Report) return below;
    return std::make_unique<ChangingSender>(std::move(below), change_);
  }
  std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) override {
    return below_.receiver(id, ends);
  }

 private:
  struct ChangingSender final : Sender {
    ChangingSender(std::unique_ptr<Sender> below, const Change& change) : below(std::move(below)), change(change) {}
    bool has_room() const override { return below->has_room(); }
    void send(Message message) override {
      Report report = to_report(message);
      if (auto* end = std::get_if<FinalReport>(&report)) {
        for (FinalReport::Replica& replica : end->replicas) {
          if (replica.stage == 1) change(replica);
        }
        message = to_message(report);
      }
      below->send(std::move(message));
    }
    std::unique_ptr<Sender> below;
    const Change& change;
  };

  Transport& below_;
  Change change_;
};

// The error that ends the run, or "ran".
std::string complaint(const Experiment& e, const Change& change) {
  try {
    run_experiment(e, 6,
                   [&](Transport& below, const Doorbells&) { return std::make_unique<ChangedReports>(below, change); });
  } catch (const RunError& error) {
    return error.what();
  }
  return "ran";
}

// Moves one microbatch from the largest value to one below the smallest.
void shift(std::map<int64_t, int64_t>& histogram) {
  ++histogram[histogram.begin()->first - 1];
  if (--histogram.rbegin()->second == 0) histogram.erase(std::prev(histogram.end()));
}

TEST(Analysis, OtherDelaysOrMismatchesEndTheSegment) {
  for (const std::string executor : {"replay", "threads"}) {
    for (const WeightPolicy weights : {WeightPolicy::Stash, WeightPolicy::Latest}) {
      Experiment e = experiment("pipedream", 3, 1);
      e.executor = executor;
      e.weights = weights;
      const bool latest = weights == WeightPolicy::Latest;
      EXPECT_EQ(complaint(e, [](FinalReport::Replica&) {}), "ran");
      EXPECT_EQ(complaint(e, [](FinalReport::Replica& seen) { shift(seen.delay); }),
                "stage 1: the delays seen, with their microbatches {-1: 1, 0: 1, 1: 4}, differ from the schedule's "
                "analysis, {0: 1, 1: 5}; this is a fault of gyre, please report it with the run's config.toml");
      EXPECT_THAT(complaint(e, [](FinalReport::Replica& seen) { shift(seen.mismatch); }),
                  AllOf(HasSubstr("stage 1: the mismatches seen"),
                        HasSubstr(latest ? "analysis, {0: 1, 1: 5};" : "analysis, {0: 6};")));
      EXPECT_THAT(complaint(e, [](FinalReport::Replica& seen) { seen.mismatch.clear(); }),
                  HasSubstr("mismatches seen, with their microbatches {}, differ"));
    }
  }
}

// The replicas of a stage are compared together, so one that saw too little is found.
TEST(Analysis, CountsTheMicrobatchesOfEveryReplica) {
  const Experiment e = experiment("amdp", 4, 4);
  int replicas = 0;
  EXPECT_THAT(complaint(e,
                        [&](FinalReport::Replica& seen) {
                          if (replicas++ == 0) --seen.delay.begin()->second;
                        }),
              HasSubstr("stage 1: the delays seen"));
  EXPECT_EQ(replicas, 2);
}

}  // namespace
}  // namespace gyre
