// Tests that measured layers come back as they were written, and that wrong files are refused with what is wrong.
#include "gyre/plan/measured_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gyre/core/error.h"

namespace gyre {
namespace {

using testing::HasSubstr;

MeasuredLayers three_layers() {
  MeasuredLayers measured;
  measured.settings = {{"model.kind", "gpt"}, {"model.width", 384}, {"optimizer.ema_decay", 0.5}};
  for (const char* name : {"embedding", "blocks.0", "head"}) {
    LayerProfile layer;
    layer.name = name;
    double seconds = 0.1 * static_cast<double>(measured.layers.size() + 1);
    for (double* time : {&layer.forward, &layer.backward_input, &layer.backward_weights, &layer.update}) {
      *time = seconds /= 3;
    }
    int64_t bytes = 1000 * (std::ssize(measured.layers) + 1);
    for (int64_t* field : {&layer.input_bytes, &layer.output_bytes, &layer.activation_bytes, &layer.passing_bytes,
                           &layer.weights_passing_bytes, &layer.split_bytes, &layer.weight_bytes, &layer.gradient_bytes,
                           &layer.optimizer_bytes, &layer.late_bytes, &layer.forecast_bytes, &layer.update_bytes,
                           &layer.late_update_bytes, &layer.tied_bytes}) {
      *field = ++bytes;
    }
    measured.layers.push_back(layer);
  }
  return measured;
}

std::string error_of(const std::string& text) {
  try {
    parse_layers(text, "plan.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MeasuredLayers, ComeBackToTheBit) {
  const MeasuredLayers measured = three_layers();
  nlohmann::ordered_json json = to_json(measured);
  json["plan"] = "something else";
  EXPECT_EQ(parse_layers(json.dump(), "plan.json"), measured);
}

TEST(MeasuredLayers, EveryFieldIsNeededAndLimited) {
  const nlohmann::ordered_json good = to_json(three_layers());
  for (const auto& [key, value] : good["layers"][1].items()) {
    if (key == "backward") continue;  // follows from its halves
    nlohmann::ordered_json json = good;
    json["layers"][1].erase(key);
    EXPECT_EQ(error_of(json.dump()), "plan.json: layers[1]: '" + key + "' is missing");
    if (key == "name") continue;
    json["layers"][1][key] = -1;
    EXPECT_THAT(error_of(json.dump()), HasSubstr("plan.json: layers[1]: '" + key + "' "));
    json["layers"][1][key] = 1e17;
    EXPECT_THAT(error_of(json.dump()), HasSubstr("plan.json: layers[1]: '" + key + "' is 1"));
    json["layers"][1][key] = "x";
    EXPECT_THAT(error_of(json.dump()), HasSubstr("plan.json: layers[1]: '" + key + "' must be "));
  }
}

TEST(MeasuredLayers, OtherFilesAreRefused) {
  EXPECT_EQ(error_of("[model]"), "plan.json: not JSON; give what gyre plan --json printed");
  EXPECT_EQ(error_of("[]"), "plan.json: must be an object");
  nlohmann::ordered_json json = to_json(three_layers());
  for (const char* key : {"measured_with", "layers"}) {
    nlohmann::ordered_json other = json;
    other.erase(key);
    EXPECT_THAT(error_of(other.dump()), HasSubstr("give what gyre plan --json printed")) << key;
    other[key] = 3;
    EXPECT_THAT(error_of(other.dump()), HasSubstr("give what gyre plan --json printed")) << key;
  }
  for (auto& layer : json["layers"]) layer["forward"] = layer["backward_input"] = layer["backward_weights"] = 0;
  EXPECT_EQ(error_of(json.dump()), "plan.json: no layer takes any time");
  json["layers"][0]["forwards"] = 1;
  EXPECT_THAT(error_of(json.dump()), HasSubstr("plan.json: layers[0]: unknown key 'forwards'"));
}

}  // namespace
}  // namespace gyre
