// Runs whose losses and gradients are not finite: what ends them does not depend on how often they were resumed.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/files.h"
#include "gyre/train/run_directory.h"
#include "train/fixture.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing_support::Runs;
namespace fs = std::filesystem;

class Divergences : public Runs {
 protected:
  // Each update makes weights 1e9 times as large, so the loss of the third and of all that follow is not finite.
  static Session session(const std::vector<std::string>& others) {
    Session session;
    session.set = {"optimizer.lr=1e6",       "optimizer.weight_decay=1e3", "optimizer.decay=\"constant\"",
                   "optimizer.warmup=0",     "optimizer.max_skipped=3",    "run.eval_every=0",
                   "run.checkpoint_every=1", "run.keep_checkpoints=20"};
    session.set.insert(session.set.end(), others.begin(), others.end());
    return session;
  }
  std::string divergence_of(const std::string& name, const Session& session) {
    try {
      run(name, session);
    } catch (const Divergence& divergence) {
      return divergence.what();
    }
    return "none";
  }
};

TEST_F(Divergences, AResumedRunEndsWhereOneThatWasNeverKilledDoes) {
  const std::string whole = divergence_of("whole", session({}));
  EXPECT_THAT(whole, HasSubstr("4 times in a row"));
  // As if it had been killed after the second of those updates.
  std::vector<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(path("whole") / "checkpoints")) checkpoints.push_back(entry.path());
  std::sort(checkpoints.begin(), checkpoints.end());
  ASSERT_GT(checkpoints.size(), 2u);
  fs::remove_all(checkpoints.back());
  for (const char* stages : {"3", "2"}) {
    fs::remove_all(path("killed"));
    fs::copy(path("whole"), path("killed"), fs::copy_options::recursive);
    std::string metrics = read_file(path("killed") / "metrics.jsonl");
    metrics.erase(metrics.rfind("{\"event\":\"end\""));  // a run that was killed has not recorded its end
    std::ofstream(path("killed") / "metrics.jsonl") << metrics;
    Session resumed = session({std::string("pipeline.stages=") + stages});
    resumed.resume = true;
    EXPECT_THAT(divergence_of("killed", resumed), HasSubstr("4 times in a row")) << stages << " stages";
  }
}

// What it had learnt is kept, however few checkpoints are, and it continues there with settings that are better.
TEST_F(Divergences, ARunThatDivergedContinuesFromBeforeUpdatesWereLeftOut) {
  // Updates are left out from the eighth or ninth on, and the run ends at the seventh of them.
  const std::vector<std::string> few = {"run.keep_checkpoints=1", "run.checkpoint_every=12", "run.updates=20",
                                        "optimizer.max_skipped=6"};
  run("run", {.set = {"run.updates=5", "run.keep_checkpoints=1", "run.eval_every=0"}});
  Session worse = session(few);
  worse.resume = true;
  EXPECT_THAT(divergence_of("run", worse),
              HasSubstr("continues from step 5, the last saved before updates were left out"));
  EXPECT_EQ(list_checkpoints(path("run") / "checkpoints"), (std::vector<int64_t>{5, 12}));
  EXPECT_TRUE(resume("run", {"run.updates=20", "optimizer.lr=1e-3"}).finished);
  EXPECT_THAT(messages(),
              HasSubstr("step-00000012: was saved while updates were left out, and the run diverged; step 12 "
                        "is set aside as damaged, the one before it is used"));
  EXPECT_THAT(messages(), HasSubstr("resuming " + path("run").string() + " at step 5"));
}

TEST_F(Divergences, ARunWhoseLastLossIsNotFiniteHasNotEndedWell) {
  const Session few = session({"run.updates=4"});
  // From which step depends on rounding, and so on how the program was compiled.
  const auto is_told = AllOf(HasSubstr("the loss of the last update, 4, is not finite; lower [optimizer] lr"),
                             ContainsRegex("continues from step [12], the last saved before updates were left out"));
  EXPECT_THAT(divergence_of("few", few), is_told);
  Session again = few;
  again.resume = true;
  EXPECT_THAT(divergence_of("few", again), is_told);
}

}  // namespace
}  // namespace gyre
