// What a run leaves behind is the same however often it was killed or stopped, and nothing of it is lost or replaced.
#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <span>
#include <stop_token>
#include <utility>

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

// As under gyre launch --max-restarts, when the directory's disk has gone: --resume may begin a run, a restart may not.
TEST_F(Records, ARunThatHasBegunAndIsGoneDoesNotBeginAgain) {
  std::string order;
  const auto noted = [&] { order += fs::exists(path("lost") / "metrics.jsonl") ? "begun " : "too early "; };
  run("lost", {.on_begun = noted});
  EXPECT_EQ(order, "begun ");
  const std::vector<std::string> more = {"run.updates=16"};
  fs::rename(path("lost"), path("elsewhere"));
  const auto refuses = [&] {
    EXPECT_THROW(run("lost", {.set = more, .resume = true, .begun = true, .on_begun = noted}), InputError);
  };
  refuses();
  EXPECT_FALSE(fs::exists(path("lost")));
  fs::create_directory(path("lost"));  // where a disk was mounted
  refuses();
  EXPECT_EQ(order, "begun ");
  fs::remove_all(path("lost"));
  fs::rename(path("elsewhere"), path("lost"));
  EXPECT_EQ(run("lost", {.set = more, .resume = true, .begun = true, .on_begun = noted}).step, 16);
  EXPECT_EQ(order, "begun begun ");
}

// --resume where no run is yet: while one process reads its data, another begins the run, trains and ends.
TEST_F(Records, ARunThatAnotherProcessHasBegunMeanwhileIsNotBegunAgain) {
  class Meanwhile final : public ForwardingFiles {
   public:
    explicit Meanwhile(std::function<void()> happens) : happens_(std::move(happens)) {}
    int make_directory(const Path& directory) override {
      if (directory == path("raced") && happens_) std::exchange(happens_, {})();
      return ForwardingFiles::make_directory(directory);
    }

   private:
    std::function<void()> happens_;
  } files([&] { run("raced", {.set = {"run.updates=8"}}); });
  EXPECT_THAT(complaint("raced", {.resume = true, .files = &files}),
              HasSubstr("raced: a run is here already; continue it with --resume"));
  EXPECT_EQ(lines("raced", "resume").size(), 0u);
  EXPECT_EQ(resume("raced", {"run.updates=12"}).step, 12);
  EXPECT_THAT(messages(), HasSubstr("at step 8"));
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

// Much data takes minutes to read.
TEST_F(Records, AStopWhileTheDataIsReadChangesNothing) {
  std::stop_source stop;
  stop.request_stop();
  const std::string stopped = "stopped while tokens were read; nothing was changed";
  EXPECT_EQ(complaint("fresh", {.stop = stop.get_token()}), stopped);
  EXPECT_FALSE(fs::exists(path("fresh")));
  run("begun");
  const std::string metrics = read_file(path("begun") / "metrics.jsonl");
  EXPECT_EQ(complaint("begun", {.set = {"run.updates=16"}, .resume = true, .stop = stop.get_token()}), stopped);
  EXPECT_EQ(read_file(path("begun") / "metrics.jsonl"), metrics);
  EXPECT_EQ(resume("begun", {"run.updates=16"}).step, 16);
}

TEST_F(Records, BeforeTheDataIsReadWhatIsWrongElsewhereIsToldAndHowMuchItIs) {
  run("in-the-way");
  fs::create_directory(path("large"));
  write_file_atomic(path("large") / "train.bin", std::string(1000, 'a'));
  std::ofstream(path("large") / "val.bin").close();
  fs::resize_file(path("large") / "val.bin", uintmax_t{1} << 30);
  const Session session{.set = {"data.tokens=" + path("large").string(), "data.vocabulary=50"}};
  EXPECT_THAT(complaint("in-the-way", session), HasSubstr("a run is here already"));
  EXPECT_THAT(check_of("in-the-way", session), HasSubstr("a run is here already"));
  for (const char* setting : {"run.init_from=/no/such/run", "run.prometheus=/no/such/file"}) {
    Session wrong = session;
    wrong.set.emplace_back(setting);
    EXPECT_THAT(complaint("fresh", wrong), HasSubstr("/no/such"));
    EXPECT_THAT(check_of("fresh", wrong), HasSubstr("/no/such"));
  }
  EXPECT_THAT(messages(), Not(HasSubstr("reading")));
  EXPECT_THAT(complaint("fresh", session), HasSubstr("train.bin: token 24929 at 0 is outside the vocabulary"));
  EXPECT_THAT(messages(), HasSubstr("reading 1.0 GiB of tokens, to check them"));
  EXPECT_THAT(complaint("fresh", {.set = {"data.vocabulary=50"}}), HasSubstr("vocabulary"));
  EXPECT_THAT(messages(), Not(HasSubstr("reading"))) << "that of small data takes no time";
}

TEST_F(Records, ARunGoesOnWithoutTheDirectoryOfItsMonitoring) {
  fs::create_directory(path("monitoring"));
  const std::string file = path("monitoring") / "gyre.prom";
  run("monitored", {.set = {"run.updates=4", "run.prometheus=" + file}});
  fs::remove_all(path("monitoring"));
  EXPECT_EQ(check_of("monitored", {.set = {"run.updates=8"}, .resume = true}).find(file), std::string::npos);
  EXPECT_EQ(resume("monitored", {"run.updates=8"}).step, 8);
  EXPECT_THAT(messages(), HasSubstr(file + ": cannot be written: No such file or directory; the run goes on without"));
  EXPECT_THAT(complaint("new", {.set = {"run.prometheus=" + file}}), HasSubstr("which cannot be written"));
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
  const TrainResult second = run(
      "stopped",
      {.set = {"run.updates=16"}, .resume = true, .stop = stop.get_token(), .on_begun = [&] { stop.request_stop(); }});
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

}  // namespace
}  // namespace gyre
