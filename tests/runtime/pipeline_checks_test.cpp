// What a caller of the library can get wrong in a pipeline or a segment: each mistake is one clear error.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <limits>

#include "gyre/model/module_layer.h"
#include "gyre/runtime/evaluate.h"
#include "runtime/fixture.h"

namespace gyre {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

// What the call's InputError says; empty if it throws none.
template <typename Call>
std::string complaint(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

RuntimeOptions sound_options() {
  RuntimeOptions options;
  options.learning_rate = [](int64_t) { return 1e-3; };
  options.stall_seconds = 60;
  return options;
}

std::string complaint_of_ranges(const std::vector<LayerRange>& ranges) {
  return complaint([&] {
    Pipeline(make_schedule({.name = "pipedream", .stages = 2, .window = 1}), build_gpt(tiny_gpt()), ranges,
             sound_options(), OptimizerConfig());
  });
}

TEST(PipelineChecks, StagesCoverAllLayersInOrder) {
  const auto count = static_cast<int>(build_gpt(tiny_gpt()).size());
  EXPECT_EQ(complaint_of_ranges({{0, 3}, {3, count}}), "");
  EXPECT_EQ(complaint_of_ranges({{0, count}}),
            "the pipeline has 2 stages and 1 range of layers; give one range for each stage");
  EXPECT_THAT(complaint_of_ranges({}), HasSubstr("2 stages and 0 ranges"));
  const std::string why = "; the stages' ranges must follow each other and cover all layers";
  EXPECT_EQ(complaint_of_ranges({{0, 3}, {4, count}}),
            fmt::format("stage 1 has layers 4 to {0} of {0}{1}", count, why));
  for (const auto& ranges : std::vector<std::vector<LayerRange>>{{{1, 3}, {3, count}},
                                                                 {{0, 3}, {2, count}},
                                                                 {{0, 3}, {3, count - 1}},
                                                                 {{0, 3}, {3, count + 1}},
                                                                 {{0, 0}, {0, count}},
                                                                 {{3, count}, {0, 3}},
                                                                 {{-1, 3}, {3, count}}}) {
    EXPECT_THAT(complaint_of_ranges(ranges), HasSubstr(why));
  }
}

TEST(PipelineChecks, ScheduleAndLayersAreThere) {
  const auto make = [](Schedule schedule, const Layers& layers) {
    return complaint([&] { Pipeline(std::move(schedule), layers, {{0, 1}}, sound_options(), OptimizerConfig()); });
  };
  EXPECT_THAT(make({}, build_gpt(tiny_gpt())), HasSubstr("is empty"));
  EXPECT_THAT(make(make_schedule({.name = "pipedream", .stages = 1, .window = 1}), {nullptr}), HasSubstr("is null"));
}

TEST(PipelineChecks, OptionsThatCannotBe) {
  const auto complains = [](auto&& change) {
    RuntimeOptions options = sound_options();
    change(options);
    const Layers layers = build_gpt(tiny_gpt());
    return complaint([&] {
      Pipeline(make_schedule({.name = "pipedream", .stages = 1, .window = 1}), layers,
               {{0, static_cast<int>(layers.size())}}, options, OptimizerConfig());
    });
  };
  EXPECT_EQ(complains([](RuntimeOptions&) {}), "");
  EXPECT_EQ(complains([](RuntimeOptions& o) { o.learning_rate = nullptr; }),
            "RuntimeOptions: learning_rate must be given, since there is an optimizer");
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.compute = at::kHalf; }), HasSubstr("compute"));
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.devices.assign(2, at::kCPU); }), HasSubstr("devices"));
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.discrepancy = 1.5; }), HasSubstr("discrepancy"));
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.clip = -1; }), HasSubstr("clip"));
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.ema_decay = 1; }), HasSubstr("ema_decay"));
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.max_skipped = -1; }), HasSubstr("max_skipped"));
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.reduction_part = 0; }), HasSubstr("reduction_part"));
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.threads_per_worker = 0; }), HasSubstr("threads_per_worker"));
  EXPECT_THAT(complains([](RuntimeOptions& o) { o.stall_seconds = std::numeric_limits<double>::quiet_NaN(); }),
              HasSubstr("stall_seconds"));
}

// A model of one's own: (4, 2) points.
class Points final : public BatchSource {
 public:
  explicit Points(bool has_targets = true) : has_targets_(has_targets) {}
  Batch batch(int64_t) const override { return {at::ones({4, 2}), has_targets_ ? at::ones({4, 1}) : at::Tensor()}; }
  int64_t tokens_per_batch() const override { return 4; }

 private:
  bool has_targets_;
};

std::shared_ptr<const Layer> linear_layer(const std::string& name, int64_t out, ModuleLayer::Loss loss = {}) {
  const auto run = [](torch::nn::Module& module, const at::Tensor& x) {
    return module.as<torch::nn::LinearImpl>()->forward(x);
  };
  return std::make_shared<ModuleLayer>(name, torch::nn::Linear(2, out).ptr(), run, std::move(loss));
}

at::Tensor mean_loss(const at::Tensor& y, const at::Tensor& target) {
  return (y - target).square().mean();
}

TEST(PipelineChecks, ParametersHaveNamesOfTheirOwn) {
  const Layers layers = {linear_layer("in", 2), linear_layer("mid", 2), linear_layer("mid", 1, mean_loss)};
  EXPECT_THAT(complaint([&] {
                Pipeline(make_schedule({.name = "pipedream", .stages = 3, .window = 1}), layers,
                         {{0, 1}, {1, 2}, {2, 3}}, sound_options(), OptimizerConfig());
              }),
              HasSubstr("two parameters of the model have the name 'mid."));
}

// A layer that only has parameters.
class Parameters final : public Layer {
 public:
  Parameters(std::string name, std::vector<ParameterSpec> specs) : name_(std::move(name)), specs_(std::move(specs)) {}
  const std::string& name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override { return specs_; }
  at::Tensor forward(const WeightView&, const at::Tensor& x, const LayerContext&, Saved&) const override { return x; }
  at::Tensor backward_input(const WeightView&, const at::Tensor& grad, Saved&) const override { return grad; }
  void backward_weights(Saved&, const GradientSums&) const override {}
  double cost(int64_t) const override { return 1; }

 private:
  std::string name_;
  std::vector<ParameterSpec> specs_;
};

std::string complaint_of_layers(const Layers& layers) {
  const auto count = static_cast<int>(layers.size());
  return complaint([&] {
    Pipeline(make_schedule({.name = "pipedream", .stages = 1, .window = 1}), layers, {{0, count}}, sound_options(),
             OptimizerConfig());
  });
}

ParameterSpec matrix(std::vector<int64_t> row_blocks = {}, std::string tied_to = {}) {
  ParameterSpec spec;
  spec.name = "weight";
  spec.shape = {6, 4};
  spec.row_blocks = std::move(row_blocks);
  spec.tied_to = std::move(tied_to);
  return spec;
}

TEST(PipelineChecks, ParametersHaveNamesThatStatesCanHave) {
  for (const char* name : {"a/b", "a[0]"}) {
    EXPECT_THAT(complaint_of_layers({std::make_shared<Parameters>(name, std::vector{matrix()})}),
                HasSubstr(fmt::format("the parameter '{}.weight' has a '/' or '['", name)));
  }
}

TEST(PipelineChecks, StackedMatricesAreAllOfAParameter) {
  const auto complaint_of = [](std::vector<int64_t> rows) {
    return complaint_of_layers({std::make_shared<Parameters>("a", std::vector{matrix(std::move(rows))})});
  };
  EXPECT_EQ(complaint_of({2, 4}), "");
  EXPECT_EQ(complaint_of({2, 2}),
            "the parameter 'a.weight' has shape (6, 4) and row_blocks of 2 + 2; they must be all its rows");
}

TEST(PipelineChecks, OnlyTheLastLayerIsTied) {
  const auto first = std::make_shared<Parameters>("first", std::vector{matrix()});
  const auto tied = std::make_shared<Parameters>("tied", std::vector{matrix({}, "first.weight")});
  const auto twice =
      std::make_shared<Parameters>("twice", std::vector{matrix({}, "first.weight"), matrix({}, "first.weight")});
  EXPECT_EQ(complaint_of_layers({first, tied}), "");
  const std::string why = "is tied to 'first.weight'; only a model's last layer can be tied, to one weight";
  EXPECT_THAT(complaint_of_layers({first, tied, std::make_shared<Parameters>("last", std::vector{matrix()})}),
              HasSubstr(why));
  EXPECT_THAT(complaint_of_layers({first, twice}), HasSubstr(why));
}

// The complaint of a training segment of two stages whose last one is `last`.
std::string complaint_of_last_layer(const std::shared_ptr<const Layer>& last, bool has_targets = true) {
  Pipeline pipeline(make_schedule({.name = "pipedream", .stages = 2, .window = 1}), {linear_layer("in", 2), last},
                    {{0, 1}, {1, 2}}, sound_options(), OptimizerConfig());
  const Points batches(has_targets);
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.microbatches = 2;
  Recorder recorder;
  return complaint([&] { make_executor("threads")->run(pipeline, segment, recorder); });
}

TEST(PipelineChecks, TheLastLayerGivesALoss) {
  EXPECT_EQ(complaint_of_last_layer(linear_layer("out", 1, mean_loss)), "");
  EXPECT_THAT(complaint_of_last_layer(linear_layer("out", 1)), HasSubstr("of shape (4, 1) where its loss must be"));
  EXPECT_THAT(complaint_of_last_layer(linear_layer("out", 1, mean_loss), /*has_targets=*/false),
              HasSubstr("module 'out' has a loss and no targets"));
}

std::string complaint_of_segment(Pipeline& pipeline, int64_t microbatches) {
  const SyntheticBatches batches = tiny_batches();
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.microbatches = microbatches;
  Recorder recorder;
  return complaint([&] { make_executor("replay")->run(pipeline, segment, recorder); });
}

TEST(PipelineChecks, ASegmentHasWholeWindows) {
  Pipeline pipeline = make_pipeline(experiment("1f1b", 2, 4));
  EXPECT_EQ(complaint_of_segment(pipeline, 6),
            "a segment of 6 microbatches cannot be run; give whole windows of schedule 1f1b, of 4 microbatches");
  EXPECT_THAT(complaint_of_segment(pipeline, -4), HasSubstr("cannot be run"));
  EXPECT_EQ(complaint_of_segment(pipeline, 8), "") << "a refused segment leaves the pipeline as it was";
}

TEST(PipelineChecks, WhatIsNotThereIsNotUsed) {
  const Layers layers = build_gpt(tiny_gpt());
  Pipeline pipeline(make_schedule({.name = "pipedream", .stages = 1, .window = 1}), layers,
                    {{0, static_cast<int>(layers.size())}}, sound_options(), std::nullopt);
  EXPECT_THAT(complaint_of_segment(pipeline, 2), HasSubstr("can only be evaluated"));
  const SyntheticBatches batches = tiny_batches();
  const auto executor = make_executor("replay");
  EXPECT_THAT(complaint([&] { evaluate(pipeline, *executor, batches, 1, 0, ModelWeights::Ema); }),
              HasSubstr("ema_decay is 0"));
  for (const int64_t none : {0, -3}) {
    EXPECT_THAT(complaint([&] { evaluate(pipeline, *executor, batches, none, 0); }), HasSubstr("at least one"));
  }
}

TEST(PipelineChecks, RestoringTheBeginningBeginsTheOptimizerAnew) {
  for (const char* optimizer : {"adamw", "basis-rotation", "muon"}) {
    Experiment e = experiment("pipedream", 2, 1);
    e.optimizer = optimizer;
    Pipeline pipeline = make_pipeline(e);
    NamedTensors fresh;
    for (const auto& [name, tensor] : pipeline.weights()) fresh[name] = tensor.clone();
    Recorder first, again;
    run_segment(pipeline, e, 0, 12, first);
    pipeline.restore(fresh, {}, 0);
    run_segment(pipeline, e, 0, 12, again);
    EXPECT_EQ(first.losses, again.losses) << optimizer;
  }
}

}  // namespace
}  // namespace gyre
