// The processes of a study, with a script in the engine's place: what is said of one that fails, and what is left
// behind.
#include "gyre/study/run_processes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/study/run_study.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

const std::string kStudy = R"([data]
tokens = "x"
[run]
updates = 40
[study]
smooth = 5
[[study.method]]
name = "a"
)";

class RunProcessesTest : public ::testing::Test {
 protected:
  RunProcessesTest() {
    options_.program = directory_ / "engine";
    options_.root = directory_ / "runs";
    make_directories(options_.root);
  }
  // What the engine does, as a shell script.
  void engine_does(const std::string& script) const {
    std::ofstream(options_.program) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(options_.program, std::filesystem::perms::owner_all);
  }
  void train() const {
    perform_runs({run_}, options_, [](const StudyRun&, RunStatus) {});
  }
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(options_.root)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const testing_support::TemporaryDirectory directory_;
  const Study study_ = parse_study(kStudy, "study.toml");
  const StudyRun run_ = final_runs(study_, study_arms(study_), 0, 1e-3)[0];
  RunProcessesOptions options_;
};

TEST_F(RunProcessesTest, ARunThatFailsIsReportedInItsOwnWords) {
  engine_does("echo 'step 3/40' >&2; echo 'gyre: x: no such file' >&2; exit 2");
  EXPECT_THAT([&] { train(); },
              ThrowsMessage<InputError>((options_.root / run_.directory).string() + ": x: no such file"));
}

TEST_F(RunProcessesTest, AKilledRunIsReportedAsThat) {
  const std::string run = (options_.root / run_.directory).string();
  options_.jobs = 2;
  engine_does("echo 'step 3/40' >&2; kill -KILL $$");
  EXPECT_THAT([&] { train(); }, ThrowsMessage<RunError>(
                                    run + ": gyre train was killed by SIGKILL, as by the kernel when memory runs out: "
                                          "fewer --jobs need less; the same command continues the study (the last "
                                          "line before: step 3/40)"));
  options_.jobs = 1;
  EXPECT_THAT([&] { train(); }, ThrowsMessage<RunError>(AllOf(HasSubstr("SIGKILL"), Not(HasSubstr("--jobs")))));
  engine_does("kill -SEGV $$");
  EXPECT_THAT([&] { train(); }, ThrowsMessage<RunError>(run + ": gyre train was killed by SIGSEGV; the same command "
                                                              "continues the study"));
}

// As where the disk has no room for its log.
TEST_F(RunProcessesTest, ARunThatFailsWithoutAWordHasAnExitCode) {
  engine_does("exit 4");
  EXPECT_THAT([&] { train(); }, ThrowsMessage<NoRoom>(HasSubstr(": gyre train failed with exit code 4; ")));
}

TEST_F(RunProcessesTest, AKilledCheckIsReportedAsThat) {
  engine_does("kill -KILL $$");
  EXPECT_THAT([&] { check_runs({run_}, options_); },
              ThrowsMessage<RunError>(StartsWith((options_.root / run_.directory).string() +
                                                 ": gyre train --check was killed by SIGKILL")));
  EXPECT_THAT(left(), IsEmpty());
}

// The log begins with what training has said.
TEST_F(RunProcessesTest, ADiagnosisThatFailsIsReportedAsThatAndLeavesNothing) {
  make_directories((options_.root / run_.directory).parent_path());
  const std::string log = (options_.root / run_.directory).string() + ".log";
  std::ofstream(log) << "step 40/40\n";
  const auto diagnose = [&] { diagnostics_of(run_, options_); };
  engine_does("echo '{\"hessian'; kill -KILL $$");
  EXPECT_THAT(diagnose, ThrowsMessage<RunError>(AllOf(HasSubstr(": gyre diagnose was killed by SIGKILL"),
                                                      HasSubstr("cannot be diagnosed"), Not(HasSubstr("step 40")))));
  engine_does("echo 'gyre: no fish' >&2; exit 1");
  EXPECT_THAT(diagnose, ThrowsMessage<RunError>((options_.root / run_.directory).string() +
                                                ": no fish; the run cannot be diagnosed"));
  std::stop_source stop;
  options_.stop = stop.get_token();
  stop.request_stop();
  engine_does("kill -INT $$");
  EXPECT_EQ(diagnostics_of(run_, options_), std::nullopt);
  const std::filesystem::path directory = run_.directory;
  EXPECT_THAT(left(), UnorderedElementsAre(directory.parent_path().string(), directory.filename().string() + ".log"));
}

TEST_F(RunProcessesTest, AStudyWhoseChecksCannotStartLeavesNothing) {
  RunStudyOptions options;
  options.root = directory_ / "study";
  options.program = directory_ / "absent";
  EXPECT_THAT([&] { run_study(study_, options); }, ThrowsMessage<RunError>(HasSubstr("absent cannot be started")));
  EXPECT_FALSE(std::filesystem::exists(options.root));
}

}  // namespace
}  // namespace gyre
