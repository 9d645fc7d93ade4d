// A trained run that is opened to be read: where its weights are.
#include <string>

#include "gyre/core/files.h"
#include "gyre/inspect/trained_model.h"
#include "train/fixture.h"

namespace gyre {
namespace {

class TrainedModels : public testing_support::Runs {};

// The files that this process maps, by Linux.
std::string maps() {
  return read_file("/proc/self/maps");
}

// An evaluation and a text only read the weights, so they need no memory for a copy in fp32.
TEST_F(TrainedModels, AreReadInTheirFileUnlessTrainingGoesOn) {
  run("run");
  const std::string weights = (std::filesystem::canonical(path("run")) / "checkpoints").string();
  for (const auto& [work, maps_file] :
       {std::pair(Work::Evaluate, true), {Work::Generate, true}, {Work::Diagnose, false}}) {
    const TrainedModel model = open_trained_model(path("run"), work);
    EXPECT_EQ(maps().find(weights) != std::string::npos, maps_file) << static_cast<int>(work);
    EXPECT_EQ(model.checkpoint.optimizer.empty(), maps_file);
  }
  EXPECT_EQ(maps().find(weights), std::string::npos) << "maps end with the models";
}

TEST_F(TrainedModels, AveragesAreReadInTheirFileToo) {
  run("averaged", {.set = {"optimizer.ema_decay=0.7"}});
  const std::string weights = (std::filesystem::canonical(path("averaged")) / "checkpoints").string();
  const TrainedModel model = open_trained_model(path("averaged"), Work::Evaluate, std::nullopt, ModelWeights::Ema);
  EXPECT_NE(maps().find(weights), std::string::npos);
}

}  // namespace
}  // namespace gyre
