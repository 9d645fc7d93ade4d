// A user's own model, which is no transformer, through an asynchronous pipeline.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fixture.h"
#include "gyre/model/module_layer.h"

namespace gyre {
namespace {

using namespace testing_support;

// y = sin(3 x1) + x2^2 on random points.
class Regression final : public BatchSource {
 public:
  Batch batch(int64_t index) const override {
    RandomStream stream(1, StreamPurpose::Test, static_cast<uint64_t>(index));
    at::Tensor x = at::empty({32, 2});
    stream.fill_normal({x.data_ptr<float>(), 64}, 0.7f);
    return {x, (at::sin(x.select(1, 0) * 3) + x.select(1, 1).square()).unsqueeze(1)};
  }
  int64_t tokens_per_batch() const override { return 32; }
};

Layers perceptron() {
  torch::manual_seed(1);
  const auto run = [](torch::nn::Module& module, const at::Tensor& x) {
    return module.as<torch::nn::SequentialImpl>()->forward(x);
  };
  const auto loss = [](const at::Tensor& y, const at::Tensor& target) { return (y - target).square().mean(); };
  namespace nn = torch::nn;
  return {std::make_shared<ModuleLayer>("in", nn::Sequential(nn::Linear(2, 32), nn::Tanh()).ptr(), run),
          std::make_shared<ModuleLayer>("middle", nn::Sequential(nn::Linear(32, 32), nn::Tanh()).ptr(), run),
          std::make_shared<ModuleLayer>("out", nn::Sequential(nn::Linear(32, 1)).ptr(), run, loss)};
}

Recorder train(const std::string& executor, const std::string& optimizer, WeightPolicy weights) {
  RuntimeOptions options;
  options.compute = at::kFloat;
  options.weights = weights;
  options.stall_seconds = 60;
  options.learning_rate = [](int64_t) { return 1e-2; };
  OptimizerConfig config;
  config.kind = optimizer;
  Pipeline pipeline(make_schedule({"pipedream", 3, 1}), perceptron(), {{0, 1}, {1, 2}, {2, 3}}, options, config);
  const Regression batches;
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.microbatches = 400;
  Recorder recorder;
  make_executor(executor)->run(pipeline, segment, recorder);
  return recorder;
}

TEST(ModulePipeline, LearnsAndIsTheSameUnderEveryExecutor) {
  for (const char* optimizer : {"adamw", "basis-rotation"}) {
    for (const WeightPolicy weights : {WeightPolicy::Stash, WeightPolicy::Latest}) {
      const Recorder replay = train("replay", optimizer, weights), threads = train("threads", optimizer, weights);
      EXPECT_EQ(replay.losses, threads.losses) << optimizer;
      double first = 0, last = 0;
      for (int64_t m = 0; m < 20; ++m) {
        first += replay.losses.at(m) / 20;
        last += replay.losses.at(399 - m) / 20;
      }
      EXPECT_LT(last, 0.3 * first) << optimizer;
    }
  }
}

// As soon as nobody holds a version, its memory may go to a later one or be written in place: the forward must be
// repeated all the same.
TEST(ModulePipeline, ABackwardWithAnotherVersionRepeatsTheForward) {
  const c10::NoGradGuard no_grad;
  const Layers layers = perceptron();
  const Stage stage({layers[0]}, 0);
  const at::Tensor x = Regression().batch(0).inputs;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    WeightStore store(stage.parameters(), type, at::kCPU);
    const auto update = [&](double scale) {
      store.restart(store.version() + 1, [&](size_t i) { return initial_value(stage.parameters()[i], 1) * scale; });
    };
    const auto gradient = [&](double forward_scale, double backward_scale) {
      update(forward_scale);
      StageSaved saved;
      const at::Tensor y = stage.forward(store.read()->for_forward(), x.to(type), {}, saved);
      if (backward_scale != forward_scale) update(backward_scale);
      FlatBuffer gradients = make_flat_buffer(stage.parameters(), at::kFloat, at::kCPU);
      stage.backward(store.read()->for_backward(), at::ones_like(y), saved, gradients.tensors);
      return gradients.flat;
    };
    const at::Tensor expected = gradient(2, 2);
    EXPECT_TRUE(gradient(1, 2).equal(expected)) << type;
    EXPECT_FALSE(gradient(1, 1).equal(expected)) << type;
  }
}

}  // namespace
}  // namespace gyre
