// "echo": a decoder of ReLU blocks that learns to repeat each token instead of predicting the next one. It has its own
// layers and its own objective.
#include <utility>

#include "gyre/build/model_maker.h"
#include "gyre/core/options.h"
#include "gyre/model/gpt.h"
#include "gyre/model/settings/model_kind.h"
#include "outside/components.h"

namespace gyre::outside {
namespace {

struct EchoSettings {
  int64_t ratio = 2;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("ratio", self.ratio, between(1, 64), "hidden size of the MLP in widths");
  }
  bool operator==(const EchoSettings&) const = default;
};

Layers layers(const ModelSettings& settings) {
  ModelSettings gpt = settings;
  gpt.mlp_width = settings.own.of_kind("echo").get<EchoSettings>().ratio * settings.width;
  gpt.activation = "relu";
  return build_gpt(gpt);
}

class Repeated final : public BatchSource {
 public:
  explicit Repeated(std::unique_ptr<BatchSource> text) : text_(std::move(text)) {}
  Batch batch(int64_t index) const override {
    Batch batch = text_->batch(index);
    batch.targets = batch.inputs;
    return batch;
  }
  int64_t tokens_per_batch() const override { return text_->tokens_per_batch(); }

 private:
  std::unique_ptr<BatchSource> text_;
};

}  // namespace

void add_echo() {
  model_kinds().add({.name = "echo", .meaning = "decoder that learns to repeat", .own = EchoSettings()});
  model_makers().add(
      {"echo", layers,
       [](const ModelSettings&, std::unique_ptr<BatchSource> text, int64_t) -> std::unique_ptr<BatchSource> {
         return std::make_unique<Repeated>(std::move(text));
       }});
}

}  // namespace gyre::outside
