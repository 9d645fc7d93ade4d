// Writes the outputs of a run's model for given tokens, in fp32.
//   gyre_model_outputs RUN OUT GREEDY TOKEN...
// OUT is a safetensors file: "logits" (tokens, vocabulary), and "greedy" (GREEDY), further tokens, each the likeliest.
#include <ATen/ATen.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "gyre/build/build.h"
#include "gyre/checkpoint/safetensors.h"
#include "gyre/inspect/decoder.h"
#include "gyre/inspect/trained_model.h"

namespace {

using namespace gyre;

void write_outputs(const std::string& run, const std::string& out, int64_t greedy, std::vector<int32_t> tokens) {
  const TrainedModel model = open_trained_model(run, Work::Generate);
  const Stage stage(build_layers(model.config), 0);
  std::vector<at::Tensor> weights;
  for (const ParameterSpec& spec : stage.parameters()) weights.push_back(model.checkpoint.weights.at(spec.name));
  weights = stage.all_of(weights);

  const at::Tensor input = at::tensor(std::vector<int64_t>(tokens.begin(), tokens.end())).unsqueeze(0);
  LayerContext context;
  context.training = false;
  StageSaved saved;
  NamedTensors outputs;
  outputs["logits"] = stage.forward(weights, input, context, saved).squeeze(0);
  std::vector<int64_t> next;
  Decoder decoder(stage, weights, model.config.model.context);
  for (int64_t n = 0; n < greedy; ++n) {
    next.push_back(decoder.read(tokens).argmax().item<int64_t>());
    tokens = {static_cast<int32_t>(next.back())};
  }
  outputs["greedy"] = at::tensor(next, at::kLong);
  write_safetensors(out, outputs);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<int32_t> tokens;
    for (int i = 4; i < argc; ++i) tokens.push_back(std::stoi(argv[i]));
    write_outputs(argv[1], argv[2], std::stoll(argv[3]), tokens);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gyre_model_outputs: %s\n", error.what());
    return 1;
  }
}
