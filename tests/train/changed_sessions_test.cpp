// Sessions of a run with other settings than those before: what they count on from, what is refused, what is said.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/manifest.h"
#include "train/fixture.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::Json;
namespace fs = std::filesystem;

class ChangedSessions : public testing_support::Runs {};

TEST_F(ChangedSessions, OtherReplicasCountOnFromTheSavedMicrobatches) {
  const auto losses_of = [&](const std::string& name) {
    std::vector<double> losses;
    for (const Json& line : lines(name, "step")) losses.push_back(line["loss"]);
    return losses;
  };
  // Every window has the same two microbatches, whoever takes them: losses differ by rounding alone.
  const std::vector<std::string> set = {"pipeline.schedule=1f1b", "optimizer.decay=constant"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), set.begin(), set.end());
    return more;
  };
  run("one", {.set = with({"pipeline.accumulate=2"})});
  run("some", {.set = with({"pipeline.accumulate=1", "pipeline.replicas=2", "run.updates=5"})});
  EXPECT_EQ(checkpoint("some").microbatches, 10);
  resume("some", {"pipeline.accumulate=2", "pipeline.replicas=1", "run.updates=9"});
  EXPECT_THAT(messages(), HasSubstr("pipeline.replicas 2 -> 1"));
  EXPECT_EQ(checkpoint("some").microbatches, 18);
  resume("some", {"pipeline.accumulate=1", "pipeline.replicas=2", "run.updates=12"});
  EXPECT_EQ(checkpoint("some").microbatches, 24);
  EXPECT_EQ(checkpoint("some").tokens, 24 * 2 * 8);
  const std::vector<double> one = losses_of("one"), some = losses_of("some");
  ASSERT_EQ(some.size(), one.size());
  for (size_t step = 0; step < one.size(); ++step) EXPECT_NEAR(some[step], one[step], 1e-3) << step + 1;
}

TEST_F(ChangedSessions, ACheckSaysWhatReplicasMake) {
  EXPECT_THAT(check_of("replicas", {.set = {"pipeline.replicas=2"}}),
              AllOf(HasSubstr("12 of 64 tokens (2 replicas x 2 microbatches x 2 sequences x 8): 768 in all"),
                    HasSubstr("pipedream on 6 workers (2 replicas), weights")));
  EXPECT_THAT(check_of("replicas", {.set = {"pipeline.replicas=100"}}), HasSubstr("replicas"));
}

TEST_F(ChangedSessions, ASummaryCountsTheTokensOfAnotherWindowBefore) {
  run("wide", {.set = {"pipeline.accumulate=8", "run.updates=6"}});
  EXPECT_THAT(messages(), HasSubstr("updates    6 of 128 tokens (8 microbatches x 2 sequences x 8): 768 in all"));
  const Session narrow = {.set = {"pipeline.accumulate=1", "run.updates=10"}, .resume = true};
  EXPECT_THAT(check_of("wide", narrow),
              HasSubstr("updates    7 to 10 of 16 tokens (1 microbatch x 2 sequences x 8): 832 in all"));
  EXPECT_EQ(run("wide", narrow).tokens, 832);
}

TEST_F(ChangedSessions, ARunThatHasBegunTakesNoOtherWeightsToBeginWith) {
  run("origin", {.set = {"run.updates=1"}});
  const std::string origin = "run.init_from=" + path("origin").string();
  run("drawn", {.set = {"run.updates=2"}});
  EXPECT_THAT(
      complaint("drawn", {.set = {origin, "run.updates=3"}, .resume = true}),
      AllOf(HasSubstr("[run] init_from is \""), HasSubstr("the run has begun, with weights of its own; leave")));
  EXPECT_EQ(lines("drawn", "resume").size(), 0);
  run("taken", {.set = {origin, "run.updates=2"}});
  resume("taken", {origin, "run.updates=3"});
  EXPECT_THAT(complaint("taken", {.set = {"run.init_from=" + path("drawn").string()}, .resume = true}),
              HasSubstr("the run has begun, with \"" + path("origin").string()));
}

TEST_F(ChangedSessions, MoreUpdatesThatRaiseTheLearningRateAreSaid) {
  const auto rises = HasSubstr("lr goes from ");
  run("finished", {.set = {"optimizer.warmup=4", "run.updates=2"}});
  resume("finished", {"run.updates=8"});
  EXPECT_THAT(messages(), Not(rises)) << "the warm-up is the same";
  EXPECT_THAT(check_of("finished", {.set = {"run.updates=12"}, .resume = true}),
              HasSubstr("lr goes from 0.0003 to 0.00113: its schedule now has 12 updates\n"));
  resume("finished", {"run.updates=12", "optimizer.decay=constant"});
  resume("finished", {"run.updates=16"});
  EXPECT_THAT(messages(), Not(rises)) << "it is constant";
}

TEST_F(ChangedSessions, OtherWindowsCountOnFromTheSavedMicrobatches) {
  // Weights that stay as they are: a microbatch's loss then depends on its number alone.
  const std::vector<std::string> still = {"optimizer.lr=0", "model.dropout=0", "run.eval_every=0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), still.begin(), still.end());
    return more;
  };
  run("each", {.set = with({"pipeline.accumulate=1", "run.updates=14"})});
  std::vector<double> loss;
  for (const Json& line : lines("each", "step")) loss.push_back(line["loss"]);
  run("windows", {.set = with({"run.updates=4"})});
  resume("windows", {"pipeline.accumulate=3", "run.updates=6"});
  const auto steps = lines("windows", "step");
  ASSERT_EQ(steps.size(), 6u);
  size_t next = 0;
  for (const Json& line : steps) {
    const size_t window = line["step"] <= 4 ? 2 : 3;
    double sum = 0;
    for (size_t i = 0; i < window; ++i) sum += loss[next++];
    EXPECT_NEAR(line["loss"].get<double>(), sum / static_cast<double>(window), 1e-6) << line.dump();
    EXPECT_EQ(line["tokens"], next * 2 * 8) << line.dump();
  }
  EXPECT_EQ(checkpoint("windows").microbatches, 14);
  EXPECT_EQ(checkpoint("windows").tokens, 14 * 2 * 8);
  int64_t counted = 0;
  const auto delays = lines("windows", "delay");
  for (const auto& [delay, microbatches] : delays[0]["histogram"].items()) counted += microbatches.get<int64_t>();
  EXPECT_EQ(counted, 14) << "delays of all sessions";

  resume("windows", {"pipeline.microbatch=5", "run.updates=7"});
  EXPECT_EQ(checkpoint("windows").microbatches, 17);
  EXPECT_EQ(lines("windows", "step").back()["tokens"], 14 * 2 * 8 + 3 * 5 * 8);
}

TEST_F(ChangedSessions, OtherMicrobatchesGoOnWithTheNextSequence) {
  // Weights that stay as they are: the loss of a sequence then depends on its tokens alone.
  const std::vector<std::string> still = {"optimizer.lr=0", "model.dropout=0", "run.eval_every=0",
                                          "data.order=\"epochs\""};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), still.begin(), still.end());
    return more;
  };
  run("single", {.set = with({"pipeline.microbatch=1", "pipeline.accumulate=1", "run.updates=62"})});
  std::vector<double> loss;
  for (const Json& line : lines("single", "step")) loss.push_back(line["loss"]);
  run("sizes", {.set = with({"run.updates=4"})});                                         // sequences 0 to 15
  resume("sizes", {"pipeline.microbatch=1", "pipeline.accumulate=4", "run.updates=6"});   // to 23
  resume("sizes", {"pipeline.microbatch=5", "pipeline.accumulate=1", "run.updates=10"});  // to 43
  resume("sizes", {"run.updates=11"});                                                    // to 48
  resume("sizes", {"pipeline.microbatch=2", "pipeline.accumulate=3", "run.updates=13"});  // to 60
  size_t next = 0;
  for (const Json& line : lines("sizes", "step")) {
    double sum = 0;
    const size_t first = next;
    for (; next * 8 < line["tokens"]; ++next) sum += loss[next];
    EXPECT_NEAR(line["loss"].get<double>(), sum / static_cast<double>(next - first), 1e-6) << line.dump();
  }
  EXPECT_EQ(next, 61u);
}

TEST_F(ChangedSessions, MixturesWhoseWeightsChangeGoOnInEachSource) {
  write_mixture();
  // Weights of the model that stay as they are: the loss of a sequence then tells it from others.
  run("mixed", {.set = {"optimizer.lr=0", "model.dropout=0", "run.eval_every=0", "pipeline.microbatch=1",
                        "pipeline.accumulate=1", "run.updates=80"},
                .config = "mixture.toml"});
  EXPECT_EQ(checkpoint("mixed").mixture.since, 0);
  resume("mixed", {"data.source.a.weight=6", "run.updates=160"});
  const MixtureRecord changed = checkpoint("mixed").mixture;
  EXPECT_EQ(changed.since, 80);
  EXPECT_EQ(changed.shares, (std::map<std::string, int64_t>{{"a", 49152}, {"b", 8192}, {"c", 8192}}));
  EXPECT_EQ(changed.used.at("a") + changed.used.at("b") + changed.used.at("c"), 80);
  resume("mixed", {"run.updates=200"});
  EXPECT_EQ(checkpoint("mixed").mixture, changed);
  resume("mixed", {"data.source.a.weight=1", "data.source.c.weight=3", "run.updates=300"});
  EXPECT_EQ(checkpoint("mixed").mixture.since, 200);
  std::set<double> losses;
  for (const Json& line : lines("mixed", "step")) losses.insert(line["loss"].get<double>());
  EXPECT_GE(losses.size(), 290u) << "of 300";  // some may be equal by chance
}

TEST_F(ChangedSessions, MixturesGoOnAsIfTheyHadNotStopped) {
  write_mixture();
  // Nothing but the mixture depends on where a session is to end; all drain at 4 and at 8.
  const auto begin = [&](const std::string& name, const std::string& updates) {
    run(name,
        {.set = {"optimizer.decay=constant", "run.eval_every=0", "run.updates=" + updates}, .config = "mixture.toml"});
  };
  begin("whole", "12");
  begin("stopped", "4");
  // The checkpoint of an earlier gyre does not say how its sources were shared: as they are now.
  const fs::path manifest_file = path("stopped") / "checkpoints" / "step-00000004" / "manifest.json";
  Manifest manifest = parse_manifest(read_file(manifest_file));
  manifest.record.mixture = {};
  std::ofstream(manifest_file) << to_text(manifest);
  resume("stopped", {"run.updates=8"});
  resume("stopped", {"run.updates=12"});
  EXPECT_EQ(tensors("stopped"), tensors("whole"));

  const std::string change = "data.source.b.weight=3";
  begin("once", "4");
  begin("often", "4");
  resume("once", {change, "run.updates=12"});
  for (const std::string updates : {"8", "12"}) resume("often", {change, "run.updates=" + updates});
  EXPECT_EQ(tensors("often"), tensors("once"));
  EXPECT_NE(tensors("once"), tensors("whole"));
}

TEST_F(ChangedSessions, WhatMakesItAnotherRunIsRefusedAndTheRestIsListed) {
  run("changed");
  const auto before = files("changed");
  const auto refuses = [&](const std::string& change, const std::string& words) {
    EXPECT_THAT(complaint("changed", {.set = {"run.updates=16", change}, .resume = true}), HasSubstr(words));
    EXPECT_EQ(files("changed"), before);
  };
  refuses("run.seed=7", "[run] seed is 7, but the run was begun with 1");
  refuses("model.width=16", "[model] width is 16, but the run was begun with 8");
  refuses("model.dropout=0.5", "[model] dropout is 0.5, but the run was begun with 0.1");
  refuses("model.activation=relu", "[model] activation is \"relu\", but the run was begun with \"gelu\"");
  resume("changed", {"run.updates=16", "optimizer.lr=1e-4", "optimizer.betas=[0.8, 0.9]"});
  EXPECT_THAT(messages(), HasSubstr("changed: optimizer.lr 0.003 -> 0.0001, optimizer.betas [] -> [0.8,0.9], "
                                    "run.updates 12 -> 16"));
  const auto resumed = lines("changed", "resume");
  ASSERT_EQ(resumed.size(), 1u);
  EXPECT_EQ(resumed[0].dump(), R"({"event":"resume","step":12,"changed":{"optimizer.lr":[0.003,0.0001],)"
                               R"("optimizer.betas":[[],[0.8,0.9]],"run.updates":[12,16]}})");
  // If the run has lost its configuration, the checkpoint still has the seed.
  fs::remove(path("changed") / "config.toml");
  EXPECT_THAT(complaint("changed", {.set = {"run.updates=20", "run.seed=7"}, .resume = true}),
              HasSubstr("[run] seed is 7, but the checkpoint was made with 1"));
}

TEST_F(ChangedSessions, AnOptimizerWhoseStateDoesNotFitIsToldByWhatChanged) {
  const std::vector<std::string> rotation = {"optimizer.kind=basis-rotation", "model.width=16"};
  run("rotated", {.set = rotation});
  EXPECT_THAT(
      complaint("rotated", {.set = {"run.updates=16", "optimizer.basis-rotation.geometry=unilateral"}, .resume = true}),
      AllOf(HasSubstr("[optimizer] has changed (optimizer.basis-rotation.geometry \"bilateral\" -> \"unilateral\")"),
            HasSubstr("Set it back, or start another run")));
  EXPECT_EQ(resume("rotated", {"run.updates=16", "optimizer.basis-rotation.interval=5"}).step, 16);
}

}  // namespace
}  // namespace gyre
