// Runs of several processes, which are threads here, each with its options and its disk: every one writes its own files
// of a checkpoint. Any number of processes goes on from them, and what goes wrong on any of them loses nothing.
#include <fmt/format.h>

#include <algorithm>

#include "gyre/inspect/trained_model.h"
#include "support/faulty_files.h"
#include "train/ranked_fixture.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::Json;
using testing_support::RankedRuns;
namespace fs = std::filesystem;

class Shards : public RankedRuns {};

TEST_F(Shards, AreWrittenByEveryProcessAndReadByAnyNumberOfThem) {
  run("whole");
  expect_sound(run_ranks("three", {.set = {"run.checkpoint_background=true"}}, 3));
  EXPECT_EQ(contents("three"), contents("whole"));
  EXPECT_EQ(record("three"), record("whole"));
  for (const auto& [name, processes] : {std::pair("three", size_t{3}), {"whole", size_t{1}}}) {
    const auto segments = lines(name, "segment");
    ASSERT_EQ(segments.size(), 4u);  // drains at 4, 6, 8, 12
    for (const Json& segment : segments) {
      ASSERT_EQ(segment["peak_resident_bytes"].size(), processes);
      for (const Json& bytes : segment["peak_resident_bytes"]) EXPECT_GT(bytes.get<int64_t>(), int64_t{1} << 20);
    }
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(saved("three", "12"))) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names, ::testing::ElementsAre(
                         "manifest.json", "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                         "model-00003-of-00003.safetensors", "model.safetensors.index.json",
                         "optimizer-00001-of-00003.safetensors", "optimizer-00002-of-00003.safetensors",
                         "optimizer-00003-of-00003.safetensors", "optimizer.safetensors.index.json"));

  expect_sound(run_ranks("several", {.set = {"run.updates=4"}}, 2));
  expect_sound(run_ranks("several", {.set = {"run.updates=8"}, .resume = true}, 3));
  EXPECT_EQ(fs::exists(saved("several", "04") / "model-00002-of-00002.safetensors"), true);
  resume("several", {"run.updates=10", "pipeline.executor=replay"});
  EXPECT_TRUE(fs::exists(saved("several", "10") / "model.safetensors"));
  expect_sound(run_ranks("several", {.set = {"run.updates=12"}, .resume = true}, 2));
  EXPECT_EQ(checkpoint("several").microbatches, 24);
  EXPECT_EQ(lines("several", "step").size(), 12u);

  // Another partition, other pipelines, and whoever reads what was trained.
  expect_sound(run_ranks("several", {.set = {"run.updates=13", "pipeline.stages=2"}, .resume = true}, 2));
  expect_sound(run_ranks("several", {.set = {"run.updates=14", "pipeline.replicas=2"}, .resume = true}, 4));
  const std::vector<std::string> sharded = {"pipeline.replicas=2", "pipeline.shard_optimizer=true"};
  expect_sound(run_ranks("several", {.set = {"run.updates=15", sharded[0], sharded[1]}, .resume = true}, 3));
  expect_sound(run_ranks("several", {.set = {"run.updates=16", sharded[0], sharded[1]}, .resume = true}, 2));
  const TrainedModel trained = open_trained_model(path("several"), Work::Diagnose);
  EXPECT_EQ(trained.checkpoint.step, 16);
  EXPECT_EQ(trained.checkpoint.weights.size(), checkpoint("whole").weights.size());
  EXPECT_EQ(trained.checkpoint.optimizer.size(), checkpoint("whole").optimizer.size());
}

TEST_F(Shards, OtherMicrobatchesGoOnWithTheNextSequenceInEveryProcess) {
  const std::vector<std::string> sets[] = {{"data.order=\"epochs\"", "run.updates=4"},
                                           {"pipeline.microbatch=1", "pipeline.accumulate=4", "run.updates=8"},
                                           {"pipeline.microbatch=3", "run.updates=12"}};
  run("sizes", {.set = sets[0]});
  for (const auto& set : {sets[1], sets[2]}) resume("sizes", set);
  expect_sound(run_ranks("sizes-of-two", {.set = sets[0]}, 2));
  for (const auto& set : {sets[1], sets[2]}) {
    expect_sound(run_ranks("sizes-of-two", {.set = set, .resume = true}, 2));
  }
  EXPECT_EQ(contents("sizes-of-two"), contents("sizes"));
  EXPECT_EQ(record("sizes-of-two"), record("sizes"));
}

TEST_F(Shards, MixturesWhoseWeightsChangeGoOnInEveryProcess) {
  write_mixture();
  const std::vector<std::string> sets[] = {{"run.updates=4"},
                                           {"data.source.b.weight=3", "run.updates=8"},
                                           {"pipeline.microbatch=3", "run.updates=10"},
                                           {"data.source.b.weight=0.5", "run.updates=12"}};
  for (const auto& set : sets) {
    const Session session = {.set = set, .config = "mixture.toml", .resume = &set != sets};
    run("mixed", session);
    expect_sound(run_ranks("mixed-of-two", session, 2));
    EXPECT_EQ(checkpoint("mixed-of-two").mixture, checkpoint("mixed").mixture);
  }
  EXPECT_EQ(contents("mixed-of-two"), contents("mixed"));
  EXPECT_EQ(record("mixed-of-two"), record("mixed"));
}

TEST_F(Shards, OfADamagedCheckpointThatTheOneBeforeStandsInFor) {
  run("sound", {.set = {"optimizer.decay=constant"}});
  for (const size_t world : {1, 2, 3}) {
    std::vector<std::string> hits = {"manifest.json"};
    for (size_t shard = 1; shard <= world; ++shard) {
      const std::string number = world == 1 ? "" : fmt::format("-{:05}-of-{:05}", shard, world);
      hits.push_back("model" + number + ".safetensors");
      hits.push_back("optimizer" + number + ".safetensors");
    }
    for (const std::string& file : hits) {
      fs::remove_all(path("hit"));
      expect_sound(run_ranks("hit", {.set = {"run.updates=8", "optimizer.decay=constant"}}, world));
      flip(saved("hit", "08") / file);
      const std::vector<std::string> further = {"run.updates=12", "run.keep_checkpoints=1", "optimizer.decay=constant"};
      expect_sound(run_ranks("hit", {.set = further, .resume = true}, world));
      EXPECT_THAT(messages(), HasSubstr((saved("hit", "08") / file).string() +
                                        ": its checksum differs; step 8 is set aside as damaged, the one before it is "
                                        "used\nresuming"));
      EXPECT_TRUE(fs::exists(path("hit") / "checkpoints" / "damaged-step-00000008" / file));
      EXPECT_EQ(list_checkpoints(path("hit") / "checkpoints"), std::vector<int64_t>{12});
      EXPECT_TRUE(record("hit") == record("sound")) << file << " of " << world;
      EXPECT_EQ(contents("hit"), contents("sound")) << file << " of " << world;
    }
  }
}

TEST_F(Shards, ThatAreMissingOrHaveNothingBeforeThemAreToldByName) {
  expect_sound(run_ranks("lost", {.set = {"run.updates=4"}}, 2));
  const auto before = files("lost");
  const auto refuses = [&](const std::string& words) {
    for (const size_t world : {2, 3}) {
      const auto ends = run_ranks("lost", {.set = {"run.updates=8"}, .resume = true}, world);
      EXPECT_THAT(ends[0].error, AllOf(HasSubstr(words), ::testing::Not(HasSubstr("\n"))));
      for (const End& end : ends) EXPECT_EQ(end.code, 2) << end.error;
    }
    EXPECT_THAT(complaint("lost", {.set = {"run.updates=8"}, .resume = true}), HasSubstr(words));
  };
  const fs::path shard = saved("lost", "04") / "optimizer-00002-of-00002.safetensors";
  const std::string content = read_file(shard);
  std::ofstream(shard, std::ios::binary) << content.substr(0, 1000);
  refuses(shard.string() + ": its size differs; the checkpoint is damaged: there is none before it");
  flip(shard);
  fs::remove(shard);
  refuses(shard.string() + ": is missing; put it back");
  std::ofstream(shard, std::ios::binary) << content;
  for (const auto& [name, was] : files("lost")) {
    if (fs::path(name).filename() == ".lock") continue;  // has each attempt's name
    EXPECT_EQ(was.first, before.at(name).first) << name;
  }
  expect_sound(run_ranks("lost", {.set = {"run.updates=8"}, .resume = true}, 2));
}

TEST_F(Shards, AProcessWithAnotherDirectoryIsRefusedAtTheStart) {
  const auto ends = run_ranks("here", {}, {{}, {.out = path("there")}});
  EXPECT_THAT(ends[0].error, AllOf(HasSubstr("rank 1 (process "), HasSubstr("is not the directory that rank 0 has"),
                                   HasSubstr("--set run.shared_directory=false"), ::testing::Not(HasSubstr("\n"))));
  for (const End& end : ends) EXPECT_EQ(end.code, 2) << end.error;
  EXPECT_FALSE(fs::exists(path("here")));
  EXPECT_FALSE(fs::exists(path("there")));
}

// One call of one process fails, for every n-th of its calls (rank 0 has many more); then the run is continued.
class ShardFaults : public Shards {
 protected:
  void walk(int64_t every_of_first, int64_t every_of_second) {
    const std::vector<std::string> set = {"run.updates=6", "run.checkpoint_every=2", "run.eval_every=0",
                                          "run.keep_checkpoints=2", "run.checkpoint_background=true"};
    run("undisturbed", {.set = set});
    const std::string expected = contents("undisturbed"), steps = record("undisturbed");
    int64_t walked = 0;
    for (const size_t struck : {0, 1}) {
      const int64_t every = struck == 0 ? every_of_first : every_of_second;
      for (const Fault fault : kAllFaults) {
        for (int64_t at = static_cast<int64_t>(fault) % every;; at += every, ++walked) {
          fs::remove_all(path("struck"));
          FaultyFiles faulty(at, fault);
          FaultyFiles sound;
          std::vector<Place> places(2, {.files = &sound});
          places[struck].files = &faulty;
          const auto ends = run_ranks("struck", {.set = set}, places);
          SCOPED_TRACE(fmt::format("rank {}: {} at call {}: {}", struck, to_string(fault), at, ends[0].error));
          if (!faulty.struck()) {
            expect_sound(ends);
            break;
          }
          if (fault == Fault::FullDisk && ends[0].error.find("was not saved") != std::string::npos) {
            EXPECT_EQ(ends[0].code, kNoRoom);  // whichever process it was
          }
          for (const int64_t step : list_checkpoints(path("struck") / "checkpoints")) {
            ASSERT_NO_THROW(load_checkpoint(path("struck") / "checkpoints", step));
          }
          const auto again = run_ranks("struck", {.set = set, .resume = true}, 2);
          ASSERT_EQ(again[0].code, 0) << again[0].error;
          ASSERT_EQ(contents("struck"), expected);
          ASSERT_EQ(record("struck"), steps);
        }
      }
    }
    std::printf("%lld faults\n", static_cast<long long>(walked));
  }
};

TEST_F(ShardFaults, OfAnyProcessLoseNothing) {
  walk(20, 8);
}

TEST_F(ShardFaults, SlowOfAnyProcessAtAnyCallLoseNothing) {
  walk(1, 1);
}

}  // namespace
}  // namespace gyre
