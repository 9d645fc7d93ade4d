// What is wrong with a run's data is reported before anything is written.
#include "gyre/train/checked_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A run on nanoGPT's token files in `place`.
Config small_run(const std::filesystem::path& place) {
  Config config;
  config.model.layers = 1;
  config.model.width = config.model.context = 8;
  config.model.heads = 2;
  config.pipeline.stages = 1;
  config.pipeline.microbatch = 2;
  config.run.eval_every = 0;
  config.data.tokens = place;
  config.data.vocabulary = 50;
  return config;
}

TEST(CheckedRun, TokensThatNobodyEvaluatesMustBeSound) {
  const testing_support::TemporaryDirectory place;
  Config config = small_run(place.path());
  write_file_atomic(place / "train.bin", std::string(1000, '\0'));
  write_file_atomic(place / "val.bin", std::string(4, '\0'));
  config.optimizer.cooldown = 3;
  EXPECT_THAT(CheckedRun{config}.summary, HasSubstr("[optimizer] cooldown has no effect: decay is cosine"));
  write_file_atomic(place / "val.bin", "1234");
  try {
    const CheckedRun run(config);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("val.bin: token 12849 at 0 is outside the vocabulary of 50"));
  }
}

TEST(CheckedRun, TheSummarySaysHowMuchRecomputeWouldSaveARunThatMayNotFit) {
  const testing_support::TemporaryDirectory place;
  Config config = small_run(place.path());
  config.pipeline.schedule = "gpipe";
  config.pipeline.accumulate = 1 << 16;  // all in memory at once
  config.pipeline.microbatch = 1 << 16;
  write_file_atomic(place / "train.bin", std::string(1000, '\0'));
  EXPECT_THAT(
      CheckedRun{config}.summary,
      HasSubstr("this may not fit: lower microbatch or context, or set recompute = true, with which it would be"));
  config.pipeline.recompute = true;
  EXPECT_THAT(CheckedRun{config}.summary, Not(HasSubstr("recompute")));
}

TEST(CheckedRun, AShareForValidationHasNoEffectOnDataWithItsOwn) {
  const testing_support::TemporaryDirectory place;
  Config config = small_run(place.path());
  const std::string unused = "[data] val_fraction has no effect: the data has validation tokens of its own";
  write_file_atomic(place / "train.bin", std::string(1000, '\0'));
  write_file_atomic(place / "val.bin", std::string(100, '\0'));
  EXPECT_THAT(CheckedRun{config}.summary, Not(HasSubstr("val_fraction"))) << "it is at its default";
  config.data.val_fraction = 0.2;
  EXPECT_THAT(CheckedRun{config}.summary, HasSubstr(unused));
  config.data.tokens = place / "train.bin";
  EXPECT_THAT(CheckedRun{config}.summary, AllOf(HasSubstr("100 to validate"), Not(HasSubstr("val_fraction"))));
  config.data.val_tokens = place / "val.bin";
  EXPECT_THAT(CheckedRun{config}.summary, HasSubstr(unused));
}

// What a run of the configuration is refused for, with the configuration's faults.
std::string complaint(const std::filesystem::path& file, const std::string& toml,
                      const std::vector<std::string>& overrides = {}) {
  write_file_atomic(file, toml);
  try {
    load_config(file, overrides, Tokens::Needed, add_faults_of_run);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CheckedRun, FaultsOfDataAndScheduleAreToldWithThoseOfKeys) {
  const testing_support::TemporaryDirectory place;
  const std::filesystem::path file = place / "bad.toml";
  const std::string nowhere = (place / "nowhere").string();
  const std::string data = "[data]\ntokens = \"" + nowhere + "\"\n";
  const std::string no_data = nowhere + ": no prepared text is here";
  EXPECT_THAT(complaint(file, "[model]\nlayers = 0\n" + data + "[pipeline]\nstages = 2\nschedule = \"1f1c\"\n"),
              AllOf(StartsWith(file.string() + ":2: [model] layers is 0; give 1 to 100000\n" + file.string() +
                               ":7: [pipeline] schedule '1f1c' is unknown, and no file of that name is there; did you "
                               "mean '1f1b'?\n"),
                    HasSubstr("\n" + no_data)));
  EXPECT_THAT(complaint(file, data + "[pipeline]\nstages = 3\naccumulate = 2\nschedule = \"interleaved-1f1b\"\n",
                        {"run.updates=0"}),
              AllOf(HasSubstr("updates is 0"), HasSubstr("\n" + no_data), HasSubstr("\n[pipeline] (stages = 3, ")));
}

// A default in place of what could not be read would give faults that nobody made.
TEST(CheckedRun, WhatCouldNotBeReadIsNotBuiltWith) {
  const testing_support::TemporaryDirectory place;
  const std::filesystem::path file = place / "bad.toml";
  const std::string data = "[data]\ntokens = \"" + (place / "nowhere").string() + "\"\n";
  const std::string schedule = "[pipeline]\nschedule = \"interleaved-1f1b\"\naccumulate = 3\n";
  for (const auto& [toml, overrides] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"[data]\ntokens = 3\n", {}},
           {data.substr(0, data.find('\n')) + "\ntokns = \"nowhere\"\n", {}},
           {"[dat]\ntokens = \"nowhere\"\n", {}},
           {"data = 1\n", {}},
           {"[data]\n", {"data.tokens=\"nowhere"}}}) {
    EXPECT_THAT(complaint(file, toml, overrides), Not(HasSubstr("no prepared text is here"))) << toml;
  }
  EXPECT_THAT(complaint(file, data + schedule + "stages = 3\n[run]\nupdates = 0\n"), HasSubstr("[pipeline] (stages"))
      << "which is what the others are about";
  for (const auto& [toml, overrides] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {schedule + "stages = 0\n", {}},
           {schedule + "stagse = 4\n", {}},
           {schedule, {"pipeline.stages=four"}},
           {"[pipelin]\nstages = 4\n", {"pipeline.schedule=interleaved-1f1b"}},
           {"[pipelin]\nstages = 200\n[optimizer]\nlr = -1\n", {}}}) {
    EXPECT_THAT(complaint(file, data + toml, overrides),
                AllOf(HasSubstr("no prepared text is here"), Not(HasSubstr("[pipeline] (stages"))))
        << toml;
  }
  EXPECT_THAT(complaint(file, data + "[model]\nwidth = 64\nheads = 5\n"),
              AllOf(HasSubstr("no prepared text is here"), Not(HasSubstr("heads do\n[model]"))));
}

}  // namespace
}  // namespace gyre
