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

using ::testing::HasSubstr;
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

TEST_F(RunProcessesTest, ADiagnosisThatFailsLeavesNothing) {
  make_directories((options_.root / run_.directory).parent_path());
  const std::string log = (options_.root / run_.directory).string() + ".log";
  std::ofstream(log) << "step 40/40\n";
  const auto diagnose = [&] { diagnostics_of(run_, options_); };
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
