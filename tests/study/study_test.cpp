// Tests studies: reading their files, the runs that they make, results from curves, and the tables of results.
#include "gyre/study/study.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "gyre/checkpoint/format/manifest.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/random.h"
#include "gyre/model/settings/special_tokens.h"
#include "gyre/study/results.h"
#include "gyre/study/run_processes.h"
#include "gyre/study/run_study.h"
#include "support/source_directory.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kBase = R"([model]
layers = 6
width = 8
heads = 2
[data]
tokens = "x"
[optimizer]
kind = "adamw"
lr = 0.25
[run]
updates = 40
)";
const std::string kStudy = kBase + R"([study]
stages = [1, 4]
learning_rates = [1e-3, 1e-2]
seeds = [1, 2, 3]
sweep_updates = 10
smooth = 5
[[study.method]]
name = "AdamW"
[[study.method]]
name = "rotation, no stash"
set = ["optimizer.kind=basis-rotation", "pipeline.weights=latest"]
learning_rates = [2e-3]
)";

std::string complaint(const std::string& toml) {
  try {
    parse_study(toml, "study.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Study, ItsRunsAreNotDrainedByTheClockUnlessItSaysSo) {
  const auto minutes = [](const std::string& toml) {
    const Study study = parse_study(toml, "study.toml");
    return final_runs(study, study_arms(study), 0, 1e-3)[0].config.run.checkpoint_minutes;
  };
  EXPECT_EQ(minutes(kStudy), 0);
  EXPECT_EQ(minutes("[run]\ncheckpoint_minutes = 5\n" + kStudy.substr(0, kStudy.find("[run]")) +
                    kStudy.substr(kStudy.find("[study]"))),
            5);
  std::string by_method = kStudy;
  by_method.replace(by_method.find("name = \"AdamW\""), 0, "set = [\"run.checkpoint_minutes=7\"]\n");
  EXPECT_EQ(minutes(by_method), 7);
}

TEST(Study, MakesTheRunsItDescribes) {
  const Study study = parse_study(kStudy, "study.toml");
  const auto arms = study_arms(study);
  ASSERT_EQ(arms.size(), 4U);
  std::set<std::string> directories;
  for (size_t arm = 0; arm < arms.size(); ++arm) {
    const bool swept = arms[arm].method == 0;
    const auto tried = trials(study, arms, arm);
    EXPECT_EQ(tried.size(), swept ? 2U : 0U) << "one rate needs no trial";
    for (const StudyRun& run : tried) {
      EXPECT_EQ(run.config.run.updates, 10);
      EXPECT_EQ(run.config.run.seed, 1);
      EXPECT_TRUE(directories.insert(run.directory).second) << run.directory;
    }
    const auto runs = final_runs(study, arms, arm, 1e-2);
    ASSERT_EQ(runs.size(), 3U);
    for (const StudyRun& run : runs) {
      EXPECT_EQ(run.config.run.updates, 40);
      EXPECT_EQ(run.config.pipeline.stages, arms[arm].stages);
      EXPECT_EQ(run.config.optimizer.lr, 1e-2);
      EXPECT_EQ(run.config.optimizer.kind, swept ? "adamw" : "basis-rotation");
      EXPECT_EQ(run.config.pipeline.weights, swept ? "auto" : "latest");
      EXPECT_TRUE(directories.insert(run.directory).second) << run.directory;
    }
  }
  EXPECT_EQ(learning_rates(study, arms[2]), std::vector<double>{2e-3});
}

TEST(Study, AMethodMayHaveFewerStages) {
  const Study study = parse_study(kStudy + "stages = [4]\n", "study.toml");
  std::set<std::pair<size_t, int64_t>> arms;
  for (const StudyArm& arm : study_arms(study)) arms.insert({arm.method, arm.stages});
  EXPECT_EQ(arms, (std::set<std::pair<size_t, int64_t>>{{0, 1}, {0, 4}, {1, 4}}));
  EXPECT_THAT(complaint(kStudy + "stages = [2]\n"), HasSubstr("\"rotation, no stash\" wants 2 stages"));
}

TEST(Study, AxesThatAreNotGivenAreTheConfigurations) {
  const Study study = parse_study(kBase + "[study]\nsmooth = 5\n[[study.method]]\nname = \"a\"\n", "study.toml");
  const auto arms = study_arms(study);
  ASSERT_EQ(arms.size(), 1U);
  EXPECT_EQ(learning_rates(study, arms[0]), std::vector<double>{0.25});
  EXPECT_EQ(final_runs(study, arms, 0, 0.25)[0].config.pipeline.schedule, "pipedream");
}

TEST(Study, BadInputSaysWhereAndWhat) {
  EXPECT_THAT(complaint(kBase), HasSubstr("no table [study]"));
  EXPECT_THAT(complaint(kBase + "[study]\n"), HasSubstr("no [[study.method]]"));
  EXPECT_THAT(complaint(kBase + "[study]\nstage = [1]\n[[study.method]]\nname = \"a\"\n"),
              HasSubstr("study.toml:13: unknown key 'stage' in [study]; did you mean 'stages'?"));
  EXPECT_THAT(
      complaint(kBase + "[study]\nsmooth = 5\n[[study.method]]\nname = \"a\"\n[[study.method]]\nname = \"A\"\n"),
      HasSubstr("used twice, or differs from another only in case or signs"));
  EXPECT_THAT(complaint(kBase + "[study]\nsmooth = 5\n[[study.method]]\nname = \"\u65b9\u6cd5\"\n"),
              HasSubstr("has no letter a-z and no digit"));
  EXPECT_THAT(complaint(kBase + "[study]\nsmooth = 5\n[[study.method]]\nset = []\n"), HasSubstr("is missing"));
  EXPECT_EQ(complaint(kBase + "[study]\nsmooth = 5\n[[study.method]]\nname = \"a\\nb\\u001b\"\n"),
            "study.toml:14: [[study.method]] name \"a\\nb\\x1b\" has control characters; leave them out");
  EXPECT_THAT(
      complaint(kBase + "[study]\nsmooth = 5\n[[study.method]]\nname = \"a\"\nset = [\"optimizer.knd=muon\"]\n"),
      HasSubstr("unknown key 'knd' in [optimizer]"));
  EXPECT_THAT(
      complaint(kBase + "[study]\nsmooth = 5\n[[study.method]]\nname = \"a\"\nset = [\"optimizer.kind=adamv\"]\n"),
      HasSubstr("did you mean 'adamw'?"))
      << "and not when its turn comes";
  EXPECT_EQ(
      complaint(kStudy + "[[study.method]]\nname = \"c\"\nset = [\"optimizer.lrs=1\", \"run.updates=many\"]\n"),
      "study.toml: [[study.method]] \"c\": set optimizer.lrs=1: unknown key 'lrs' in [optimizer]; did you mean 'lr'?\n"
      "study.toml: [[study.method]] \"c\": set run.updates=many: [run] updates is many; give a whole number");
  EXPECT_THAT(
      complaint(kStudy + "[[study.method]]\nname = \"c\"\nset = [\"pipeline.schedule=zb-v\"]\n"),
      HasSubstr("study.toml: [[study.method]] \"c\": [pipeline] (stages = 1, accumulate = 1): schedule zb-v: "));
  EXPECT_THAT(complaint(kBase + "[study]\nsmooth = 50\n[[study.method]]\nname = \"a\"\n"), HasSubstr("smooth is 50"));
  EXPECT_THAT(complaint(kBase + "[study]\nsmooth = 5\nstages = [0]\n[[study.method]]\nname = \"a\"\n"),
              HasSubstr("[study] stages"));
  EXPECT_THAT(complaint(kBase + "[study]\nsmooth = 5\nschedules = [\"gpip\"]\n[[study.method]]\nname = \"a\"\n"),
              HasSubstr("gpip"));
}

TEST(Study, NoTwoOfItsRunsAreTheSame) {
  const auto study = [](const std::string& keys, const std::string& own = "") {
    return complaint(kBase + "[study]\nsmooth = 5\n" + keys + "[[study.method]]\nname = \"a\"\n" + own);
  };
  EXPECT_EQ(study("stages = [1, 2, 1]\n"), "study.toml: [study] stages has 1 twice; leave one out");
  EXPECT_EQ(study("schedules = [\"gpipe\", \"gpipe\"]\n"),
            "study.toml: [study] schedules has gpipe twice; leave one out");
  EXPECT_EQ(study("weights = [\"stash\", \"stash\"]\n"), "study.toml: [study] weights has stash twice; leave one out");
  EXPECT_EQ(study("", "learning_rates = [0.5, 0.25, 0.5]\n"),
            "study.toml: [[study.method]] \"a\" learning_rates has 0.5 twice; leave one out");
}

TEST(Study, NoTwoOfItsMethodsAreTheSame) {
  const auto study = [](const std::string& keys, const std::string& own) {
    return complaint(kBase + "[study]\nsmooth = 5\n" + keys + "[[study.method]]\nname = \"a\"\n" + own);
  };
  const std::string same =
      "study.toml: [[study.method]] \"a\" and \"b\" are the same: every key has the same value in both, with 1 stage; "
      "leave one out, or let it set another value";
  const std::string b = "[[study.method]]\nname = \"b\"\n";
  EXPECT_EQ(study("", b), same);
  EXPECT_EQ(study("", b + "set = [\"optimizer.kind=adamw\"]\n"), same) << "which is the configuration's own";
  EXPECT_EQ(study("", b + "learning_rates = [0.25, 0.5]\n"), "accepted") << "it chooses from other rates";
  EXPECT_EQ(study("stages = [1, 2]\n", "stages = [1]\n" + b + "stages = [2]\n"), "accepted");
}

TEST(Study, AMethodDoesNotSetWhatTheStudyDecides) {
  const auto study = [](const std::string& keys, const std::string& own) {
    return complaint(kBase + "[study]\nsmooth = 5\n" + keys + "[[study.method]]\nname = \"a\"\n" + own);
  };
  EXPECT_EQ(
      study("", "set = [\"optimizer.kind=muon\", \"pipeline.stages=4\"]\n"),
      "study.toml: [[study.method]] \"a\": set pipeline.stages=4: a study takes that from [study] stages; give it "
      "there");
  EXPECT_THAT(study("", "set = [\"run.seed=2\"]\n"),
              HasSubstr("set run.seed=2: a study takes that from [study] seeds"));
  const std::string schedule = "set = [\"pipeline.schedule=gpipe\"]\n",
                    weights = "set = [\"pipeline.weights=stash\"]\n";
  EXPECT_EQ(study("", schedule), "accepted");
  EXPECT_THAT(study("schedules = [\"1f1b\"]\n", schedule), HasSubstr("from [study] schedules"));
  EXPECT_EQ(study("", weights), "accepted");
  EXPECT_THAT(study("weights = [\"latest\"]\n", weights), HasSubstr("from [study] weights"));
  const std::string rate = "set = [\"optimizer.lr=0.5\"]\n";
  EXPECT_EQ(study("", rate), "accepted");
  EXPECT_THAT(study("learning_rates = [0.1]\n", rate), HasSubstr("from [study] learning_rates"));
  EXPECT_THAT(study("", rate + "learning_rates = [0.1]\n"), HasSubstr("from the method's learning_rates"));
}

TEST(Study, RunsDoNotWriteOneFile) {
  const std::string refused =
      "study.toml: [run] prometheus: all runs of a study would write that one file; leave it out, and watch a study "
      "with gyre top";
  EXPECT_EQ(complaint(kBase + "prometheus = \"a.prom\"\n[study]\nsmooth = 5\n[[study.method]]\nname = \"a\"\n"),
            refused);
  EXPECT_EQ(complaint(kBase + "[study]\nsmooth = 5\n[[study.method]]\nname = \"a\"\n"
                              "set = [\"run.prometheus=a.prom\"]\n"),
            refused);
}

// Directories are named after methods and schedules together, so different pairs of them may have one name.
TEST(Study, NoTwoOfItsArmsShareADirectory) {
  const auto study = [](const std::string& schedules, const std::string& other) {
    return complaint(kBase + "[study]\nsmooth = 5\nstages = [2]\nschedules = " + schedules +
                     "\n[[study.method]]\nname = \"adamw\"\n[[study.method]]\nname = \"" + other + "\"\n");
  };
  EXPECT_EQ(study("[\"1f1b\", \"interleaved-1f1b\"]", "adamw interleaved"),
            "study.toml: the arms \"adamw, interleaved-1f1b\" and \"adamw interleaved, 1f1b\" would share the "
            "directory adamw-interleaved-1f1b-p2; rename a method or a schedule's file");
  EXPECT_THAT(study("[\"a_1.sched\", \"a-1.sched\"]", "muon"),
              HasSubstr("the arms \"adamw, a_1.sched\" and \"adamw, a-1.sched\" would share the directory"));
}

TEST(Study, FaultsOfTheStudyAndOfItsRunsAreToldTogether) {
  EXPECT_EQ(complaint(kBase + "sed = 1\n[study]\nsmoth = 5\n[[study.method]]\nname = \"a\"\nsets = []\n"),
            "study.toml:14: unknown key 'smoth' in [study]; did you mean 'smooth'?\n"
            "study.toml:17: unknown key 'sets' in [study.method]; did you mean 'set'?\n"
            "study.toml:12: unknown key 'sed' in [run]; did you mean 'seed'?");
}

TEST(Study, DocumentationAndExamplesAreInStep) {
  const std::filesystem::path root = testing_support::source_directory();
  EXPECT_THAT(read_file(root / "docs/studies.md"), HasSubstr(describe_study()))
      << "docs/studies.md must hold what gyre study --help-study prints";
  int studies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "examples")) {
    if (entry.path().filename().string().rfind("study-", 0) != 0) continue;
    EXPECT_NO_THROW(load_study(entry.path())) << entry.path();
    ++studies;
  }
  EXPECT_GE(studies, 3);
}

// A worker may have several stages, so the number of workers is taken from the schedule.
TEST(Study, ARunKeepsACoreBusyForEveryThreadOfEveryWorker) {
  const auto cores = [](const std::vector<std::string>& set) { return busy_cores(parse_config(kBase, "x", set)); };
  EXPECT_EQ(cores({"pipeline.stages=4"}), 4);
  EXPECT_EQ(cores({"pipeline.stages=4", "pipeline.threads_per_worker=3"}), 12);
  EXPECT_EQ(cores({"pipeline.stages=4", "pipeline.executor=replay"}), 1);
  EXPECT_EQ(cores({"pipeline.stages=4", "pipeline.schedule=interleaved-1f1b", "pipeline.accumulate=2"}), 2);
}

TEST(Curve, SmoothsAndFindsTheFirstUpdateAtTheTarget) {
  const std::vector<double> loss = {5, 1, 3, 2, 2, 1};
  EXPECT_EQ(smoothed(loss, 2), (std::vector<double>{5, 3, 2, 2.5, 2, 1.5}));
  EXPECT_EQ(first_at_most(smoothed(loss, 2), 2, 2), 3);
  EXPECT_EQ(first_at_most(smoothed(loss, 2), 5, 2), 2) << "not before a full window";
  EXPECT_EQ(first_at_most(smoothed(loss, 2), 1, 2), std::nullopt);
}

// This ends soon only if each value is summed a few times at most, and not once for every window that it is in.
TEST(Curve, SmoothingTakesAsLongForAWideWindow) {
  std::vector<double> loss(2'000'000);
  std::iota(loss.begin(), loss.end(), 0.0);
  const auto means = smoothed(loss, 1'000'000);
  EXPECT_EQ(means[999'999], 499'999.5);
  EXPECT_EQ(means[1'499'999], 999'999.5);
  EXPECT_EQ(means.back(), 1'499'999.5);
}

TEST(Curve, ALargeLossIsInTheMeansOfItsWindowsOnly) {
  RandomStream stream(1, StreamPurpose::Test, 0);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> loss(1 + stream.below(200));
    for (double& value : loss) value = stream.below(20) == 0 ? 1e20 : stream.uniform();
    const auto width = static_cast<size_t>(1 + stream.below(30));
    const auto means = smoothed(loss, static_cast<int64_t>(width));
    ASSERT_EQ(means.size(), loss.size());
    for (size_t i = 0; i < loss.size(); ++i) {
      const size_t count = std::min(i + 1, width);
      double sum = 0;
      for (size_t j = i + 1 - count; j <= i; ++j) sum += loss[j];
      EXPECT_NEAR(means[i], sum / static_cast<double>(count), 1e-12 * sum) << "width " << width << ", update " << i + 1;
    }
  }
}

class StudyFiles : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    write_file_atomic(root_ / name, text);
    return root_ / name;
  }
  const testing_support::TemporaryDirectory directory_;
  const std::filesystem::path root_ = directory_.path();
};

TEST_F(StudyFiles, CurvesAreReadAcrossSessions) {
  const auto file = write("metrics.jsonl", R"({"event":"step","step":1,"loss":3.5,"seconds":10}
{"event":"step","step":2,"loss":3.25,"seconds":20}
{"event":"step","step":3,"loss":null,"seconds":4}
{"event":"eval","step":3,"val_loss":2.5}
{"event":"end","status":"finished","step":3}
)");
  const Curve curve = read_curve(file);
  EXPECT_EQ(curve.loss, (std::vector<double>{3.5, 3.25, 3.25}))
      << "an update that was left out counts as the one before";
  EXPECT_EQ(parse_curve("{\"event\":\"step\",\"step\":1,\"loss\":null}\n{\"event\":\"step\",\"step\":2,\"loss\":3}\n"
                        "{\"event\":\"step\",\"step\":3,\"loss\":null}\n{\"event\":\"step\",\"step\":4,\"loss\":2}\n",
                        "x")
                .loss,
            (std::vector<double>{3, 3, 3, 2}))
      << "and where there is none before, as the next one";
  EXPECT_EQ(curve.seconds, (std::vector<double>{10, 20, 24})) << "the second session counts from its own start";
  EXPECT_EQ(curve.val_loss, 2.5);
  EXPECT_EQ(parse_curve("{\"event\":\"eval\",\"step\":1,\"val_loss\":2.5}\n"
                        "{\"event\":\"eval\",\"step\":2,\"val_loss\":null}\n",
                        "x")
                .val_loss,
            std::nullopt)
      << "an evaluation that is not finite does not leave the place to an older one";
  EXPECT_EQ(end_status(file), "finished");
  EXPECT_EQ(end_status(root_ / "absent"), "");
  EXPECT_THROW(read_curve(write("gap", "{\"event\":\"step\",\"step\":2,\"loss\":1,\"seconds\":1}\n")), InputError);
  EXPECT_TRUE(read_curve(write("torn", "{\"event\":\"st")).loss.empty()) << "what a kill tore is left out";
  EXPECT_THROW(read_curve(write("cut", "{\"event\":\"st\n{\"event\":\"end\"}\n")), InputError);
  EXPECT_THROW(end_status(write("cut", "{\"event\":\"st\n{\"event\":\"end\",\"step\":3}\n")), InputError);
  const Curve resumed = read_curve(write("resumed", R"({"event":"step","step":1,"loss":3.5,"seconds":10}
{"event":"resume","step":1,"changed":{}}
{"event":"step","step":2,"loss":3.25,"seconds":12}
)"));
  const auto no_steps = write("no steps", "{\"event\":\"end\",\"status\":\"finished\",\"step\":3}\n");
  try {
    read_curve(no_steps);
    ADD_FAILURE() << "a finished run has steps";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(no_steps.string() + ":1: the run is finished and has no steps"));
  }
  EXPECT_EQ(resumed.seconds, (std::vector<double>{10, 22})) << "also where the second session had reached more seconds";
}

TEST_F(StudyFiles, ARunIsDoneBegunOrSomebodyElses) {
  const Study study = parse_study(kStudy, "study.toml");
  const auto arms = study_arms(study);
  Config config = final_runs(study, arms, 0, 1e-3)[0].config;
  const auto directory = root_ / "run";
  EXPECT_EQ(status_of(directory, config), RunStatus::Absent);
  Config resolved = config;
  resolved.model.vocabulary = 256;                                      // from the data
  resolved.run.checkpoint_minutes = config.run.checkpoint_minutes + 5;  // the study's file has changed since
  write("run/config.toml", to_toml(resolved));
  EXPECT_EQ(status_of(directory, config), RunStatus::Begun);
  write("run/metrics.jsonl", "{\"event\":\"end\",\"step\":3,\"status\":\"interrupted\"}\n");
  EXPECT_EQ(status_of(directory, config), RunStatus::Begun);
  write("run/metrics.jsonl", "{\"event\":\"end\",\"step\":3,\"status\":\"diverged\"}\n");
  EXPECT_EQ(status_of(directory, config), RunStatus::Diverged);
  write("run/metrics.jsonl", "{\"event\":\"end\",\"step\":3,\"status\":\"finished\"}\n");
  EXPECT_EQ(status_of(directory, config), RunStatus::Finished);
  config.optimizer.lr *= 2;
  EXPECT_THROW(status_of(directory, config), InputError);
}

TEST_F(StudyFiles, SpecialTokensThatARunTookFromItsDataAreNoOtherSettings) {
  std::string toml = kStudy;
  toml.insert(toml.find("[model]") + 8, "kind = \"bert\"\n");
  const Study study = parse_study(toml, "study.toml");
  const Config config = final_runs(study, study_arms(study), 0, 1e-3)[0].config;
  Config resolved = config;
  resolved.model.vocabulary = 61;
  take_tokens({{"[CLS]", 2}, {"[SEP]", 3}, {"[MASK]", 4}}, resolved.model);
  ASSERT_FALSE(has_open_tokens(resolved.model));
  write("run/config.toml", to_toml(resolved));
  EXPECT_EQ(status_of(root_ / "run", config), RunStatus::Begun);
  Config other = resolved;
  other.model.vocabulary = 62;
  EXPECT_THROW(status_of(root_ / "run", other), InputError) << "the study gives another";
}

TEST_F(StudyFiles, AReportLeavesOutAnArmUntilAllItsRatesAreTried) {
  const Study study = parse_study(kStudy, "study.toml");
  const auto arms = study_arms(study);
  const auto finish = [&](const StudyRun& run) {
    write("runs/" + run.directory + "/config.toml", to_toml(run.config));
    write("runs/" + run.directory + "/metrics.jsonl",
          "{\"event\":\"step\",\"step\":1,\"loss\":2}\n{\"event\":\"end\",\"step\":1,\"status\":\"finished\"}\n");
  };
  const auto compared = [&] {
    RunStudyOptions options;
    options.root = root_;
    options.report_only = true;
    const auto result = run_study(study, options);
    EXPECT_THAT(result->target_rule,
                HasSubstr(fmt::format(" Left out: {} of {} arms, ", arms.size() - result->arms.size(), arms.size())));
    return result->arms.size();
  };
  const auto tried = trials(study, arms, 0);
  finish(tried[0]);
  for (const StudyRun& run : final_runs(study, arms, 0, tried[0].learning_rate)) finish(run);
  EXPECT_EQ(compared(), 0U) << "the other rate may be the better one";
  finish(tried[1]);
  EXPECT_EQ(compared(), 1U);
}

TEST_F(StudyFiles, RunsOfDataThatHasChangedBetweenThemAreNotCompared) {
  const Study study = parse_study(kStudy, "study.toml");
  const auto finish = [&](const StudyRun& run, int64_t step, const std::string& checksum) {
    Manifest manifest;
    manifest.record.step = step;
    manifest.record.data = {{"train.bin", checksum}};
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      manifest.files[file] = {1, "0123456789abcdef0123456789abcdef"};
    }
    const std::string directory = "runs/" + run.directory;
    write(directory + "/config.toml", to_toml(run.config));
    write(directory + "/metrics.jsonl",
          "{\"event\":\"step\",\"step\":1,\"loss\":2}\n{\"event\":\"end\",\"step\":1,\"status\":\"finished\"}\n");
    write(fmt::format("{}/checkpoints/step-{:08}/manifest.json", directory, step), to_text(manifest));
  };
  const auto report = [&]() -> std::string {
    RunStudyOptions options;
    options.root = root_;
    options.report_only = true;
    try {
      run_study(study, options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "compared";
  };
  const auto tried = trials(study, study_arms(study), 0);
  finish(tried[0], 40, "one");
  finish(tried[1], 30, "two");
  const std::string runs = (root_ / "runs").string();
  EXPECT_EQ(report(),
            fmt::format("{}/{}: was trained on another train.bin than {}/{}: the data has changed since one of "
                        "them; choose another --out, or remove the runs of the data that is gone",
                        runs, tried[1].directory, runs, tried[0].directory));
  finish(tried[1], 100000000, "one");
  EXPECT_EQ(report(), "compared") << "the newest checkpoint says what the run was trained on";
  write("runs/" + tried[1].directory + "/checkpoints/step-100000000/manifest.json", "{");
  std::filesystem::remove_all(root_ / "runs" / tried[1].directory / "checkpoints/step-00000030");
  EXPECT_EQ(report(), "compared") << "nothing is known";
}

ArmResult arm_of(size_t method, int64_t stages, std::vector<double> loss) {
  ArmResult arm;
  arm.arm = {method, "", "", stages};
  arm.learning_rate = 1e-3;
  arm.diverged = loss.empty();
  for (size_t i = 0; i < loss.size(); ++i) arm.curve.seconds.push_back(static_cast<double>(i + 1) * 0.5);
  arm.curve.loss = std::move(loss);
  return arm;
}

TEST(Results, TargetsAndSlowdowns) {
  Study study = parse_study(kStudy, "study.toml");
  study.smooth = 1;
  const std::vector<ArmResult> arms = {arm_of(0, 1, {4, 3, 2, 1}), arm_of(0, 4, {4, 4, 3, 2}),
                                       arm_of(1, 1, {3, 2, 1, 1}), arm_of(1, 4, {})};
  const StudyResult result = summarise(study, arms);
  ASSERT_EQ(result.targets, std::vector<double>{2}) << "the highest last loss of those that did not diverge";
  EXPECT_EQ(result.arms[0].targets[0].updates, 3);
  EXPECT_EQ(result.arms[0].targets[0].seconds, 1.5);
  EXPECT_EQ(result.arms[1].targets[0].updates, 4);
  EXPECT_DOUBLE_EQ(*result.arms[1].targets[0].slowdown, 4.0 / 3);
  EXPECT_EQ(result.arms[2].targets[0].updates, 2);
  EXPECT_FALSE(result.arms[3].targets[0].updates);
  const std::string text = to_markdown(result);
  EXPECT_THAT(text, HasSubstr("| AdamW | 3 (1.00) | 4 (1.33) |"));
  EXPECT_THAT(text, Not(HasSubstr("Left out")));
  EXPECT_THAT(text, HasSubstr("| rotation, no stash | 2 (1.00) | diverged |"));
  EXPECT_THAT(to_csv(result), HasSubstr("\"AdamW\",4,0.001,0,2,,2,4,2,1.3333333333333333"));
  EXPECT_THAT(to_json(result), HasSubstr("\"updates\": 4"));
}

TEST(Results, SecondsHaveThreeDigitsHoweverShortTheRun) {
  Study study = parse_study(kStudy, "study.toml");
  study.smooth = 1;
  const auto took = [&](double seconds) {
    ArmResult arm = arm_of(0, 1, {4});
    arm.curve.seconds = {seconds};
    const std::string text = to_markdown(summarise(study, {arm}));
    const size_t row = text.find("| AdamW | ", text.find("## Seconds")) + 10;
    return text.substr(row, text.find(' ', row) - row);
  };
  EXPECT_EQ(took(0.01234), "0.0123");
  EXPECT_EQ(took(3.456), "3.46");
  EXPECT_EQ(took(99.96), "100");
  EXPECT_EQ(took(12345.6), "12346");
}

TEST(Results, WhereAllDivergedThereIsNoTarget) {
  Study study = parse_study(kStudy, "study.toml");
  const StudyResult result = summarise(study, {arm_of(0, 1, {}), arm_of(1, 4, {})});
  EXPECT_THAT(result.target_rule, HasSubstr("There is no target"));
  EXPECT_THAT(to_csv(result),
              HasSubstr("slowdown\n\"AdamW\",1,0.001,1,,,,,,\n\"rotation, no stash\",4,0.001,1,,,,,,\n"));
  study.targets = {2};
  EXPECT_THAT(summarise(study, {arm_of(0, 1, {})}).target_rule, HasSubstr("that the study names"));
}

TEST(Results, ANameWithQuotesIsOneFieldOfARow) {
  Study study = parse_study(kStudy, "study.toml");
  study.methods[0].name = "all \"big\"";
  EXPECT_THAT(to_csv(summarise(study, {arm_of(0, 1, {4, 3, 2, 1, 1})})), HasSubstr("\n\"all \"\"big\"\"\",1,"));
}

TEST(Results, DamagedDiagnosticsAreNamed) {
  const std::string good = R"({"hessian_norm":2.5,"rotated_norm":null,"stages":[{"cosine":-0.5,"oscillation":3}]})";
  const ArmDiagnostics read = read_diagnostics(good, "x");
  EXPECT_EQ(read.hessian_norm, 2.5);
  EXPECT_TRUE(std::isnan(read.rotated_norm)) << "it was not finite";
  EXPECT_EQ(read.cosine, -0.5);
  EXPECT_EQ(read.oscillation, 3);
  const ArmDiagnostics still =
      read_diagnostics(R"({"hessian_norm":2.5,"rotated_norm":2,"stages":[{"cosine":null,"oscillation":null}]})", "x");
  EXPECT_FALSE(still.cosine || still.oscillation) << "no update changed a weight";
  for (const std::string& text : {std::string(), good.substr(0, 40), std::string("[]"), std::string(R"({"stages":[]})"),
                                  std::string(R"({"hessian_norm":"2"})")}) {
    try {
      read_diagnostics(text, "a.diagnostics.json");
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a.diagnostics.json: is damaged")) << text;
    }
  }
}

TEST(Results, TheBestRateIsThatOfTheLowestLoss) {
  EXPECT_EQ(best_rate({{1e-3, 2.5}, {1e-2, 2.25}, {1e-1, std::nullopt}}), 1e-2);
  EXPECT_EQ(best_rate({{1e-1, std::nullopt}}), std::nullopt);
}

}  // namespace
}  // namespace gyre
