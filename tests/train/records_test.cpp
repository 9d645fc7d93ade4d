// What a run leaves behind is the same however often it was killed or stopped, and nothing of it is lost or replaced.
#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <span>
#include <stop_token>

#include "gyre/report/metrics_reader.h"
#include "support/faulty_files.h"
#include "support/forwarding_files.h"
#include "train/fixture.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::Json;
using testing_support::Runs;
namespace fs = std::filesystem;

class Records : public Runs {
 protected:
  // The names of all that a run's directory holds but for costs.json, which has times, and what a kill left of it.
  static std::vector<std::string> names(const std::string& run) {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(path(run))) {
      const std::string name = entry.path().lexically_relative(path(run)).string();
      if (name.find("costs.json") == std::string::npos) all.push_back(name);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  // A session whose call number `at` fails, for every `every`-th `at` until nothing does; then another, and a third
  // that ends the run. Checkpoints are written in the background or not.
  void walk_over_runs(std::span<const Fault> faults, int64_t every, const std::string& background) {
    const std::vector<std::string> set = {"run.updates=6", "run.checkpoint_every=2", "run.eval_every=3",
                                          "run.keep_checkpoints=1", "run.checkpoint_background=" + background};
    fs::remove_all(path("whole"));
    run("whole", {.set = set});
    const std::string record = this->record("whole"), tensors = this->tensors("whole");
    int64_t walked = 0;
    for (const Fault fault : faults) {
      for (int64_t at = 0;; at += every, ++walked) {
        fs::remove_all(path("hit"));
        FaultyFiles files(at, fault);
        const std::string error = complaint("hit", {.set = set, .files = &files});
        if (!files.struck()) break;
        FaultyFiles again(at * 7 % 60, fault);
        const std::string second = complaint("hit", {.set = set, .resume = true, .files = &again});
        SCOPED_TRACE(to_string(fault) + " at call " + std::to_string(at) + ": " + error + "; then: " + second);
        ASSERT_NO_THROW(run("hit", {.set = set, .resume = true}));
        ASSERT_EQ(this->record("hit"), record);
        ASSERT_EQ(this->tensors("hit"), tensors);
        // What one failure kept from being removed stays until the next save, without a message.
        if (fault != Fault::Error) {
          ASSERT_EQ(names("hit"), names("whole"));
        }
      }
    }
    std::printf("%lld faults\n", static_cast<long long>(walked));
  }
};

TEST_F(Records, AreThoseOfAnUninterruptedRunWhateverHappenedToIt) {
  walk_over_runs(std::array{Fault::Kill, Fault::PowerCut, Fault::FullDisk}, 3, "false");
}

TEST_F(Records, AreTheSameWhateverHappenedToOneThatSavesBesideTraining) {
  walk_over_runs(kAllFaults, 7, "true");
}

TEST_F(Records, SlowAreThoseOfAnUninterruptedRunWhateverHappenedToItAtAnyCall) {
  for (const std::string background : {"false", "true"}) walk_over_runs(kAllFaults, 1, background);
}

TEST_F(Records, ACheckpointAlwaysHasItsMetrics) {
  for (int64_t at = 0;; ++at) {
    fs::remove_all(path("cut"));
    FaultyFiles files(at, Fault::PowerCut);
    complaint("cut", {.set = {"run.updates=3", "run.checkpoint_every=1", "run.eval_every=0"}, .files = &files});
    if (!files.struck()) break;
    const auto newest = latest_checkpoint(path("cut") / "checkpoints");
    if (!newest) continue;
    ASSERT_NO_THROW(read_record(path("cut") / "metrics.jsonl", *newest)) << at;
  }
}

TEST_F(Records, CheckpointsThatAreGoneAreNotABeginning) {
  run("gone");
  const fs::path checkpoints = path("gone") / "checkpoints", aside = path("aside");
  const std::string metrics = read_file(path("gone") / "metrics.jsonl");
  const auto refuses = [&](const std::string& words) {
    EXPECT_THAT(complaint("gone", {.set = {"run.updates=16"}, .resume = true}), HasSubstr(words));
    EXPECT_EQ(read_file(path("gone") / "metrics.jsonl"), metrics);
  };
  fs::rename(checkpoints, aside);
  refuses("says that one was written at step 12");
  fs::create_directory(checkpoints);  // where a disk was mounted
  refuses("says that one was written at step 12");
  fs::remove(checkpoints);
  fs::create_symlink("nowhere", checkpoints);
  refuses("is a link to nowhere, which is not there");
  fs::remove(checkpoints);
  fs::create_symlink("checkpoints", checkpoints);
  refuses("cannot be looked at");
  fs::remove(checkpoints);
  std::ofstream(checkpoints) << "no directory";
  refuses("cannot be read: Not a directory");
  fs::remove(checkpoints);
  fs::create_symlink(aside, checkpoints);  // moved to another disk
  EXPECT_EQ(resume("gone", {"run.updates=16"}).step, 16);
}

TEST_F(Records, ARunKilledBeforeItsFirstCheckpointBeginsAgainAndSaysSo) {
  FaultyFiles files(30, Fault::Kill);
  complaint("early", {.set = {"run.checkpoint_every=0"}, .files = &files});
  ASSERT_GT(read_record(path("early") / "metrics.jsonl", 0).newest_step, 2);
  EXPECT_EQ(complaint("early", {}).find("ran"), std::string::npos) << "a new run does not take its place";
  resume("early");
  EXPECT_THAT(messages(), HasSubstr("no checkpoint was written, starting from step 0; steps 1 to"));
  EXPECT_EQ(lines("early", "step").size(), 12u);

  fs::remove_all(path("early"));
  FaultyFiles again(30, Fault::Kill);
  complaint("early", {.set = {"run.checkpoint_every=0"}, .files = &again});
  fs::remove_all(path("early") / "checkpoints");
  const std::string way_out = "remove " + (path("early") / "metrics.jsonl").string() + " to begin again";
  EXPECT_THAT(complaint("early", {.resume = true}), AllOf(HasSubstr("checkpoints: is missing"), HasSubstr(way_out)));
  fs::remove(path("early") / "metrics.jsonl");
  EXPECT_EQ(resume("early").step, 12);
}

TEST_F(Records, AnEmptyMountPointIsNoBeginningBeforeTheFirstCheckpointIsNotedEither) {
  // Killed at every call after its first checkpoint has its name, before the metrics note it.
  int64_t unnoted = 0;
  for (int64_t at = 0;; ++at) {
    fs::remove_all(path("first"));
    FaultyFiles files(at, Fault::Kill);
    complaint("first", {.set = {"run.updates=2", "run.checkpoint_every=2", "run.eval_every=0"}, .files = &files});
    ASSERT_TRUE(files.struck());
    const bool saved = !list_checkpoints(path("first") / "checkpoints").empty();
    const bool noted = saved && read_record(path("first") / "metrics.jsonl", 2).last_checkpoint.has_value();
    if (noted) break;
    if (!saved) continue;
    ++unnoted;
    const auto metrics = read_file(path("first") / "metrics.jsonl");
    fs::rename(path("first") / "checkpoints", path("unmounted"));
    fs::create_directory(path("first") / "checkpoints");
    EXPECT_THAT(complaint("first", {.resume = true}),
                AllOf(HasSubstr("has no checkpoint and is not the directory that the run made"),
                      HasSubstr("has 2 steps; mount or put back what is missing, or remove")));
    EXPECT_EQ(read_file(path("first") / "metrics.jsonl"), metrics);
    fs::remove(path("first") / "checkpoints");
    fs::rename(path("unmounted"), path("first") / "checkpoints");
    EXPECT_EQ(resume("first", {"run.updates=4"}).step, 4);
  }
  EXPECT_GT(unnoted, 0);
}

TEST_F(Records, RunsWithoutTheMarkOfTheirCheckpointsGoOn) {
  run("unmarked", {.set = {"run.keep_checkpoints=1"}});
  const fs::path marker = path("unmarked") / "checkpoints" / ".of-a-run";
  ASSERT_TRUE(fs::exists(marker)) << "removing obsolete checkpoints leaves it";
  fs::remove(marker);
  EXPECT_EQ(resume("unmarked", {"run.updates=16"}).step, 16);
  EXPECT_TRUE(fs::exists(marker));
}

TEST_F(Records, ANewRunDoesNotTakeThePlaceOfWhatIsLeftOfOne) {
  run("old");
  const auto before = files("old");
  EXPECT_THAT(complaint("old", {}), HasSubstr("a run is here already"));
  EXPECT_EQ(files("old"), before);
  fs::rename(path("old") / "config.toml", path("kept.toml"));
  EXPECT_THAT(complaint("old", {}), HasSubstr("belongs to a run whose config.toml is missing"));
  const std::string metrics = read_file(path("old") / "metrics.jsonl");
  fs::remove(path("old") / "metrics.jsonl");
  EXPECT_THAT(complaint("old", {}), HasSubstr("checkpoints: belongs to a run"));
  fs::remove_all(path("old") / "checkpoints");
  write_file_atomic(path("old") / "metrics.jsonl", metrics);
  EXPECT_THAT(complaint("old", {}), HasSubstr("metrics.jsonl: belongs to a run"));
  fs::remove(path("old") / "metrics.jsonl");
  EXPECT_EQ(run("old").step, 12);
}

TEST_F(Records, AGapIsAnErrorThatChangesNothing) {
  run("gap");
  const fs::path metrics = path("gap") / "metrics.jsonl";
  std::string text = read_file(metrics);
  const size_t begin = text.find("{\"event\":\"step\",\"step\":7,"), end = text.find('\n', begin) + 1;
  const int64_t line = std::count(text.begin(), text.begin() + static_cast<int64_t>(begin), '\n') + 1;
  text.erase(begin, end - begin);
  write_file_atomic(metrics, text);
  const Session further{.set = {"run.updates=16"}, .resume = true};
  EXPECT_THAT(complaint("gap", further),
              HasSubstr(metrics.string() + ":" + std::to_string(line) + ": has step 8, where step 7 must come next"));
  EXPECT_EQ(read_file(metrics), text);
  fs::remove(metrics);
  EXPECT_THAT(complaint("gap", further), HasSubstr("is missing, with the lines of steps 1 to 12"));
  std::ofstream(metrics).close();  // the user's own decision
  run("gap", further);
  EXPECT_THAT(messages(), HasSubstr("steps 1 to 12 stay without a record"));
  EXPECT_EQ(lines("gap", "step").front()["step"], 13);
  EXPECT_EQ(resume("gap", {"run.updates=18"}).step, 18) << "the file goes on from there";
}

TEST_F(Records, ARunThatHasNothingLeftToDoIsNotTouched) {
  const TrainResult first = run("done");
  const auto before = files("done");
  const TrainResult again = resume("done");
  EXPECT_THAT(messages(), HasSubstr("is at step 12 of 12 already; nothing to do"));
  EXPECT_EQ(files("done"), before);
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(again.step, 12);
  EXPECT_EQ(again.loss, first.loss);
  EXPECT_EQ(again.val_loss, first.val_loss);
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.parameters, first.parameters);
  EXPECT_EQ(again.tokens_per_second, first.tokens_per_second);
  EXPECT_EQ(resume("done", {"run.updates=9", "optimizer.lr=1"}).loss, first.loss) << "a target that it has passed";
  EXPECT_THAT(messages(), HasSubstr("is at step 12 and [run] updates is 9; nothing to do"));
  EXPECT_EQ(files("done"), before);
}

TEST_F(Records, ACheckReadsAllThatAResumeWouldAndWritesNothing) {
  run("checked", {.set = {"run.updates=10"}});
  const auto before = files("checked");
  FaultyFiles watched;
  const auto check = [&](std::vector<std::string> set) {
    const std::string said = check_of("checked", {.set = std::move(set), .resume = true, .files = &watched});
    EXPECT_EQ(files("checked"), before);
    EXPECT_EQ(watched.calls(), 0);
    return said;
  };
  EXPECT_THAT(check({"run.updates=16", "optimizer.lr=1e-4"}),
              AllOf(HasSubstr("predicted"), HasSubstr("resuming"), HasSubstr("at step 10"),
                    HasSubstr("changed: optimizer.lr 0.003 -> 0.0001, run.updates 10 -> 16")));
  EXPECT_THAT(check({}), HasSubstr("is at step 10 of 10 already; nothing to do"));
  EXPECT_THAT(check({"run.updates=16", "run.seed=7"}), HasSubstr("[run] seed is 7"));
  EXPECT_THAT(check({"run.updates=16", "optimizer.kind=muon"}), HasSubstr("it was saved by another optimizer"));
  EXPECT_THAT(check({"run.updates=16", "pipeline.stages=2"}), HasSubstr("resuming"));

  const fs::path checkpoints = path("checked") / "checkpoints", saved = checkpoints / "step-00000010";
  for (const char* file : {"optimizer.safetensors", "model.safetensors", "manifest.json"}) {
    const std::string sound = read_file(saved / file);
    std::string damaged = sound;
    damaged[damaged.size() / 2] ^= 1;
    std::ofstream(saved / file, std::ios::binary) << damaged;
    EXPECT_THAT(check_of("checked", {.set = {"run.updates=16"}, .resume = true}), HasSubstr("its checksum differs"));
    std::ofstream(saved / file, std::ios::binary) << sound;
  }
  fs::rename(checkpoints, path("moved"));
  EXPECT_THAT(check_of("checked", {.set = {"run.updates=16"}, .resume = true}), HasSubstr("mount or put back"));
  fs::rename(path("moved"), checkpoints);
  EXPECT_EQ(resume("checked", {"run.updates=16"}).step, 16);
}

TEST_F(Records, ARunKilledAfterItsLastCheckpointGetsItsEnd) {
  run("ended");
  const std::string all = record("ended");
  std::string text = read_file(path("ended") / "metrics.jsonl");
  write_file_atomic(path("ended") / "metrics.jsonl", text.substr(0, text.find("{\"event\":\"delay\"")));
  const TrainResult result = resume("ended");
  EXPECT_EQ(record("ended"), all);
  const Json end = lines("ended").back();
  EXPECT_EQ(end["status"], "finished");
  EXPECT_EQ(end["step"], 12);
  EXPECT_EQ(end["tokens"], lines("ended", "step").back()["tokens"]);
  EXPECT_EQ(end["loss"], lines("ended", "step").back()["loss"]);
  EXPECT_EQ(result.tokens, end["tokens"]);
}

TEST_F(Records, OtherReplicasCountOnFromTheSavedMicrobatches) {
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

TEST_F(Records, ACheckSaysWhatReplicasMake) {
  EXPECT_THAT(check_of("replicas", {.set = {"pipeline.replicas=2"}}),
              AllOf(HasSubstr("12 of 64 tokens (2 replicas x 2 microbatches x 2 sequences x 8): 768 in all"),
                    HasSubstr("pipedream on 6 workers (2 replicas), weights")));
  EXPECT_THAT(check_of("replicas", {.set = {"pipeline.replicas=100"}}), HasSubstr("replicas"));
}

TEST_F(Records, ASummaryCountsTheTokensOfAnotherWindowBefore) {
  run("wide", {.set = {"pipeline.accumulate=8", "run.updates=6"}});
  EXPECT_THAT(messages(), HasSubstr("updates    6 of 128 tokens (8 microbatches x 2 sequences x 8): 768 in all"));
  const Session narrow = {.set = {"pipeline.accumulate=1", "run.updates=10"}, .resume = true};
  EXPECT_THAT(check_of("wide", narrow),
              HasSubstr("updates    7 to 10 of 16 tokens (1 microbatch x 2 sequences x 8): 832 in all"));
  EXPECT_EQ(run("wide", narrow).tokens, 832);
}

TEST_F(Records, ARunThatHasBegunTakesNoOtherWeightsToBeginWith) {
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

TEST_F(Records, MoreUpdatesThatRaiseTheLearningRateAreSaid) {
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

TEST_F(Records, OtherWindowsCountOnFromTheSavedMicrobatches) {
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

TEST_F(Records, OtherMicrobatchesGoOnWithTheNextSequence) {
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

TEST_F(Records, MixturesWhoseWeightsChangeGoOnInEachSource) {
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

TEST_F(Records, MixturesGoOnAsIfTheyHadNotStopped) {
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

TEST_F(Records, WhatMakesItAnotherRunIsRefusedAndTheRestIsListed) {
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

TEST_F(Records, CheckpointsByTimeAreRecordedSoThatTheRunCanBeRepeated) {
  for (const std::string executor : {"replay", "threads"}) {
    const std::string timed = "timed-" + executor, planned = "planned-" + executor;
    const std::string use = "pipeline.executor=" + executor;
    run(timed, {.set = {use, "run.updates=20", "run.checkpoint_every=0", "run.checkpoint_minutes=1e-9",
                        "run.keep_checkpoints=0"}});
    std::vector<int64_t> drains;
    for (const Json& line : lines(timed, "drain")) {
      EXPECT_EQ(line["reason"], "checkpoint");
      drains.push_back(line["step"]);
    }
    ASSERT_GE(drains.size(), 2u);
    EXPECT_EQ(checkpoint(timed).drains, drains);
    const auto steps = list_checkpoints(path(timed) / "checkpoints");
    for (const int64_t drain : drains) EXPECT_EQ(std::count(steps.begin(), steps.end(), drain), 1) << drain;
    run(planned, {.set = {use, "run.updates=20", "run.checkpoint_every=0", "run.drains=" + Json(drains).dump()}});
    EXPECT_EQ(record(planned), record(timed));
    EXPECT_EQ(tensors(planned), tensors(timed));
  }
  run("without", {.set = {"run.updates=20", "run.checkpoint_every=0"}});
  EXPECT_NE(tensors("without"), tensors("timed-replay")) << "else there was nothing to record";
}

TEST_F(Records, AnInterruptAtOnceKeepsTheNumbersOfTheRun) {
  const TrainResult first = run("stopped");
  std::stop_source stop;
  stop.request_stop();
  const TrainResult second = run("stopped", {.set = {"run.updates=16"}, .resume = true, .stop = stop.get_token()});
  EXPECT_FALSE(second.finished);
  EXPECT_EQ(second.step, 12);
  EXPECT_EQ(second.loss, first.loss);
  EXPECT_EQ(second.tokens, first.tokens);
  EXPECT_EQ(lines("stopped").back()["loss"], first.loss);
}

// A signal during the evaluation at a drain point does not make that evaluation run again.
TEST_F(Records, AnInterruptDuringAnEvaluationDoesNotRepeatIt) {
  std::stop_source stop;
  class StopsAtEvaluation final : public ForwardingFiles {
   public:
    explicit StopsAtEvaluation(std::stop_source& stop) : stop_(stop) {}
    ssize_t write(int descriptor, const void* data, size_t bytes) override {
      const ssize_t put = ForwardingFiles::write(descriptor, data, bytes);
      const std::string_view line(static_cast<const char*>(data), bytes);
      if (line.starts_with("{\"event\":\"eval\",\"step\":6,")) stop_.request_stop();
      return put;
    }

   private:
    std::stop_source& stop_;
  } files(stop);
  EXPECT_EQ(run("evaluated", {.files = &files, .stop = stop.get_token()}).step, 6);
  EXPECT_EQ(lines("evaluated", "eval").size(), 1u);
}

TEST_F(Records, AnOptimizerWhoseStateDoesNotFitIsToldByWhatChanged) {
  const std::vector<std::string> rotation = {"optimizer.kind=basis-rotation", "model.width=16"};
  run("rotated", {.set = rotation});
  EXPECT_THAT(
      complaint("rotated", {.set = {"run.updates=16", "optimizer.basis-rotation.geometry=unilateral"}, .resume = true}),
      AllOf(HasSubstr("[optimizer] has changed (optimizer.basis-rotation.geometry \"bilateral\" -> \"unilateral\")"),
            HasSubstr("Set it back, or start another run")));
  EXPECT_EQ(resume("rotated", {"run.updates=16", "optimizer.basis-rotation.interval=5"}).step, 16);
}

// The error names the checkpoint that is none, not the metrics, which do not know of it.
TEST_F(Records, ADamagedCheckpointIsToldBeforeAGap) {
  run("damaged");
  fs::create_directory(path("damaged") / "checkpoints" / "step-99999999");
  EXPECT_THAT(complaint("damaged", {.set = {"run.updates=16"}, .resume = true}),
              AllOf(HasSubstr("step-99999999/manifest.json: is missing"), HasSubstr("to continue from step 12")));
}

TEST_F(Records, IfAllCheckpointsAreDamagedAllAreTold) {
  run("all-damaged", {.set = {"run.checkpoint_every=4"}});
  for (const int64_t step : list_checkpoints(path("all-damaged") / "checkpoints")) {
    std::ofstream(checkpoint_path(path("all-damaged") / "checkpoints", step) / "manifest.json") << "{}";
  }
  EXPECT_THAT(complaint("all-damaged", {.set = {"run.updates=16"}, .resume = true}),
              AllOf(HasSubstr("step-00000004/manifest.json"), HasSubstr("so are steps 12, 8 ("),
                    HasSubstr("step-00000012/manifest.json"), HasSubstr("start another run with --out")));
}

// A disk with room for a given number of bytes, which also remembers what was there when a checkpoint was begun.
class SmallDisk final : public ForwardingFiles {
 public:
  SmallDisk(int64_t free, fs::path checkpoints) : free_(free), checkpoints_(std::move(checkpoints)) {}
  int64_t free_bytes(const Path&) override { return free_; }
  int make_directory(const Path& path) override {
    const std::string name = path.filename().string();
    if (name.rfind(".tmp-step", 0) == 0) {
      found_.push_back(list_checkpoints(checkpoints_));
      if (after_) free_ = *after_;
    }
    return ForwardingFiles::make_directory(path);
  }
  void becomes(int64_t free) { after_ = free; }
  const std::vector<std::vector<int64_t>>& found() const { return found_; }

 private:
  int64_t free_;
  std::optional<int64_t> after_;
  fs::path checkpoints_;
  std::vector<std::vector<int64_t>> found_;
};

TEST_F(Records, RoomIsLookedForBeforeTheFirstUpdate) {
  SmallDisk disk(100'000, path("small") / "checkpoints");
  const std::string error = complaint("small", {.files = &disk});
  EXPECT_THAT(error, HasSubstr("a checkpoint needs 1."));
  EXPECT_THAT(error, HasSubstr("and 97.7 KiB are free there; free "));
  EXPECT_FALSE(fs::exists(path("small") / "config.toml"));
  EXPECT_FALSE(fs::exists(path("small") / "metrics.jsonl"));
}

// Of a checkpoint at any update: one between a refresh in the background and its taking has the next bases too.
TEST_F(Records, TheRoomIsThatOfTheLargestCheckpoint) {
  const std::vector<std::string> set = {"optimizer.kind=\"basis-rotation\"", "optimizer.basis-rotation.interval=4",
                                        "optimizer.basis-rotation.refresh_lag=2", "model.width=64"};
  run("saved", {.set = set});
  double largest = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("saved") / "checkpoints" / "step-00000012")) {
    largest += static_cast<double>(entry.file_size());
  }
  SmallDisk disk(static_cast<int64_t>(largest), path("no room") / "checkpoints");
  EXPECT_THAT(complaint("no room", {.set = set, .files = &disk}), HasSubstr("a checkpoint needs "));
  EXPECT_EQ(checkpoint("saved").optimizer.count("blocks.0.attention.projection.weight/left_next_basis"), 1U);
}

TEST_F(Records, ObsoleteCheckpointsGoFirstWhereRoomIsShort) {
  SmallDisk disk(int64_t{1} << 40, path("short") / "checkpoints");
  disk.becomes(0);  // after the first
  run("short", {.set = {"run.keep_checkpoints=2", "run.checkpoint_every=2"}, .files = &disk});
  EXPECT_EQ(disk.found(), (std::vector<std::vector<int64_t>>{{}, {2}, {4}, {6}, {8}, {10}}))
      << "one stays, whatever happens";
  EXPECT_EQ(list_checkpoints(path("short") / "checkpoints"), (std::vector<int64_t>{10, 12}));
  SmallDisk roomy(int64_t{1} << 40, path("roomy") / "checkpoints");
  run("roomy", {.set = {"run.keep_checkpoints=2"}, .files = &roomy});
  EXPECT_EQ(roomy.found(), (std::vector<std::vector<int64_t>>{{}, {4}, {4, 8}}));
}

TEST_F(Records, AFailedSaveSaysHowToGoOn) {
  std::vector<std::string> errors;
  for (int64_t at = 0;; ++at) {
    fs::remove_all(path("full"));
    FaultyFiles files(at, Fault::FullDisk);
    const std::string error = complaint("full", {.files = &files});
    if (!files.struck()) break;
    if (error.find("was not saved") != std::string::npos) errors.push_back(error);
  }
  const std::string how = "gyre train --resume " + path("full").string() + " continues from ";
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(errors.front(), HasSubstr("step 4 was not saved. It takes 1."));
  EXPECT_THAT(errors.front(), HasSubstr(how + "the beginning"));
  EXPECT_THAT(errors.back(), HasSubstr("step 12 was not saved"));
  EXPECT_THAT(errors.back(), HasSubstr(how + "step 8, the last that was saved"));
}

TEST_F(Records, ARunSaysWhereAndHowOftenItSaves) {
  run("says", {.set = {"run.updates=1", "run.checkpoint_minutes=10"}});
  EXPECT_THAT(messages(), HasSubstr("saves to " + (path("says") / "checkpoints").string() +
                                    " every 4 updates (checkpoint_every), 10 minutes after the last save "
                                    "(checkpoint_minutes), when interrupted and at its end; keeps the newest 3 "
                                    "(keep_checkpoints)"));
}

}  // namespace
}  // namespace gyre
