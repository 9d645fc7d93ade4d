// Tests that layers which were measured with other settings, or of another model, are refused by name.
#include "gyre/inspect/profile_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gyre/build/build.h"
#include "gyre/core/error.h"

namespace gyre {
namespace {

using testing::HasSubstr;

Config config_with_settings(const std::vector<std::string>& overrides) {
  return parse_config(
      "[data]\ntokens = 't'\n[model]\nlayers = 2\nwidth = 8\nheads = 2\ncontext = 16\nvocabulary = 40\n", "run.toml",
      overrides);
}

MeasuredLayers measured_with(const Config& config) {
  MeasuredLayers measured{profile_settings(config), {}};
  for (const auto& layer : build_layers(config)) measured.layers.emplace_back().name = layer->name();
  return measured;
}

// Of layers that were measured with the first overrides, for a configuration with the second.
std::string error_of(const std::vector<std::string>& measured, const std::vector<std::string>& asked) {
  Config config = config_with_settings(asked);
  try {
    take_profile(measured_with(config_with_settings(measured)), "plan.json", config);
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(ProfileSettings, AreComparedKeyByKey) {
  EXPECT_EQ(
      error_of({"pipeline.microbatch=4"}, {"pipeline.microbatch=2"}),
      "plan.json: its layers were measured with pipeline.microbatch = 4, and the configuration has 2; measure them "
      "with gyre plan --json");
  for (const char* change :
       {"model.layers=3", "model.width=16", "model.heads=4", "model.context=8", "model.vocabulary=41", "model.tie=true",
        "model.activation=relu", "model.kind=bert", "optimizer.kind=adamw", "optimizer.moments=bf16",
        "optimizer.ema_decay=0.5", "optimizer.basis-rotation.interval=7", "pipeline.microbatch=3",
        "pipeline.threads_per_worker=2", "pipeline.weights=latest", "pipeline.device=cuda", "run.precision=fp32"}) {
    const std::string name(change, std::string(change).find('='));
    const std::string error = error_of({}, {change});
    EXPECT_THAT(error, HasSubstr("plan.json: its layers were measured with ")) << change;
    // Another kind has other keys besides.
    if (!name.ends_with(".kind")) {
      EXPECT_THAT(error, HasSubstr(name + " = ")) << change;
    }
  }
}

TEST(ProfileSettings, WhatChangesNoLayerIsNotCompared) {
  EXPECT_EQ(error_of({}, {"optimizer.lr=0.5", "optimizer.warmup=7", "run.updates=12", "pipeline.stages=2",
                          "pipeline.schedule=gpipe", "pipeline.replicas=3", "data.tokens=other"}),
            "taken");
  // A second microbatch of an update adds to gradients that are there.
  EXPECT_EQ(error_of({"pipeline.accumulate=2"}, {"pipeline.accumulate=8"}), "taken");
  EXPECT_THAT(error_of({"pipeline.accumulate=1"}, {"pipeline.accumulate=8"}),
              HasSubstr("measured with pipeline.accumulate = 1, and the configuration has 8"));
}

TEST(ProfileSettings, TheVocabularyIsThatOfTheMeasurement) {
  Config config = config_with_settings({"model.vocabulary=0"});
  take_profile(measured_with(config_with_settings({})), "plan.json", config);
  EXPECT_EQ(config.model.vocabulary, 40);
}

TEST(ProfileSettings, SpecialTokensAreThoseOfTheMeasurementWithItsVocabulary) {
  const std::vector<std::string> given = {"model.kind=bert", "model.bert.classify_token=2",
                                          "model.bert.separator_token=3", "model.bert.mask_token=4"};
  Config config = config_with_settings({"model.kind=bert", "model.vocabulary=0"});
  take_profile(measured_with(config_with_settings(given)), "plan.json", config);
  EXPECT_EQ(config.model, config_with_settings(given).model);
  config = config_with_settings({"model.kind=bert"});
  EXPECT_THAT([&] { take_profile(measured_with(config_with_settings(given)), "plan.json", config); },
              testing::ThrowsMessage<InputError>(HasSubstr("token = 2, and the configuration has -1")))
      << "with a vocabulary, open tokens are its last";
}

TEST(ProfileSettings, LayersAreThoseOfTheModel) {
  Config config = config_with_settings({});
  MeasuredLayers measured = measured_with(config);
  measured.layers[1].name = "blocks.0.mixer";
  EXPECT_THAT(
      [&] { take_profile(measured, "plan.json", config); },
      testing::ThrowsMessage<InputError>(HasSubstr("'blocks.0.mixer' is where 'blocks.0.attention' should be")));
  measured.layers.pop_back();
  EXPECT_THAT([&] { take_profile(measured, "plan.json", config); },
              testing::ThrowsMessage<InputError>(HasSubstr("its layers are 5, and the model has 6")));
  measured.settings.erase("run.precision");
  EXPECT_THAT(
      [&] { take_profile(measured, "plan.json", config); },
      testing::ThrowsMessage<InputError>(HasSubstr("run.precision = nothing, and the configuration has \"bf16\"")));
}

}  // namespace
}  // namespace gyre
