// A trained run's model in a pipeline that runs one window at a time, at weights of the caller's choice. Forward,
// backward, clipping and update are the runtime's. The caller replaces each stage's optimizer by one of its own, which
// gets the gradient and decides what to do with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gyre/batches/batch.h"
#include "gyre/config/config.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/pipeline.h"

namespace gyre {

using StageTensors = std::vector<at::Tensor>;  // in the order of the stage's parameters

class WindowPipeline {
 public:
  // As many stages as `config` has, without delay, in fp32. `optimizer`: of each stage; none if all are replaced.
  // `batches` must outlive this object.
  WindowPipeline(const Config& config, const BatchSource& batches, RuntimeOptions options,
                 std::optional<OptimizerConfig> optimizer);

  // Replaces the optimizer of each stage by `made`(stage, the stage's own optimizer, null if it has none).
  using Replace = std::function<std::unique_ptr<Optimizer>(int stage, std::unique_ptr<Optimizer> own)>;
  void replace_optimizers(const Replace& made);

  int stages() const { return pipeline_.schedule().stages; }
  const std::vector<ParameterSpec>& specs(int stage) const { return pipeline_.owner(stage).layers.parameters(); }
  Pipeline& pipeline() { return pipeline_; }
  // Sets what forward and backward read from the next window on.
  void set_weights(int stage, std::span<const at::Tensor> weights);
  // Runs microbatches [first, first + count) as update `update` (from 1) of a run.
  void run(int64_t first, int64_t count, int64_t update);

 private:
  Pipeline pipeline_;
  std::unique_ptr<Executor> executor_;
  const BatchSource& batches_;
};

}  // namespace gyre
