#include "gyre/model/module_layer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <tuple>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {

// One microbatch between forward and backward. `output` holds its autograd graph.
struct ModuleLayer::InFlight {
  std::unique_ptr<Copy> copy;
  VersionId version;  // the one that the forward read
  at::Tensor input, targets, output;
};

struct ModuleLayer::Kept {
  std::shared_ptr<InFlight> flight;
  std::vector<at::Tensor> gradients;  // of the weights; set by backward_input for backward_weights
  auto members() const { return std::tie(flight, gradients); }
};

namespace {

// Throws InputError for a module that a layer would not train as the module says.
void check(const std::string& name, const torch::nn::Module& module) {
  if (!module.buffers().empty()) {
    throw InputError(
        fmt::format("module '{}' has buffers (running statistics), which belong to no weight version; use layers "
                    "without them, such as LayerNorm for BatchNorm",
                    name));
  }
  std::map<const at::TensorImpl*, std::string> names;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) {
      throw InputError(
          fmt::format("module '{}': its parameter '{}' is frozen (requires_grad is false), and a layer trains all of "
                      "its parameters; take the frozen tensor out of the module and into its forward function",
                      name, item.key()));
    }
    const auto [first, is_new] = names.emplace(item.value().unsafeGetTensorImpl(), item.key());
    if (!is_new) {
      throw InputError(
          fmt::format("module '{}': its parameters '{}' and '{}' are the same one, which copies of the module would "
                      "have twice; register it once, and use it twice in the forward function",
                      name, first->second, item.key()));
    }
  }
}

}  // namespace

ModuleLayer::ModuleLayer(std::string name, std::shared_ptr<torch::nn::Module> module, Forward forward, Loss loss)
    : name_(std::move(name)), module_(std::move(module)), forward_(std::move(forward)), loss_(std::move(loss)) {
  if (module_ == nullptr || forward_ == nullptr) {
    throw InputError(
        fmt::format("module '{}': the {} is null", name_, module_ == nullptr ? "module" : "forward function"));
  }
  check(name_, *module_);
}

std::vector<ParameterSpec> ModuleLayer::parameters() const {
  std::vector<ParameterSpec> specs;
  for (const auto& item : module_->named_parameters()) {
    ParameterSpec spec;
    spec.name = item.key();
    spec.shape = item.value().sizes().vec();
    spec.initialization.kind = Initialization::Kind::Value;
    spec.initialization.value = item.value().detach();
    spec.decay = spec.rotate = spec.shape.size() == 2;
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::unique_ptr<ModuleLayer::Copy> ModuleLayer::take_copy(at::Device device) const {
  const std::lock_guard lock(mutex_);
  for (auto free = free_.begin(); free != free_.end(); ++free) {
    if ((*free)->device != device) continue;
    auto copy = std::move(*free);
    free_.erase(free);
    return copy;
  }
  auto clone = module_->clone(device);
  auto parameters = clone->parameters();
  return std::make_unique<Copy>(Copy{device, std::move(clone), std::move(parameters)});
}

void ModuleLayer::give_back(std::unique_ptr<Copy> copy) const {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(copy));
}

void ModuleLayer::record(const WeightView& weights, InFlight& flight) const {
  for (size_t i = 0; i < weights.size(); ++i) flight.copy->parameters[i].set_data(weights[i]);
  flight.output = forward_(*flight.copy->module, flight.input);
  if (loss_ && flight.targets.defined()) {
    flight.output = loss_(flight.output, flight.targets.to(flight.output.device())).to(at::kFloat);
    if (flight.output.dim() > 0) {
      throw InputError(fmt::format("module '{}': its loss has the shape ({}); give a mean, of no dimensions", name_,
                                   fmt::join(flight.output.sizes(), ", ")));
    }
  }
}

at::Tensor ModuleLayer::forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                                Saved& saved) const {
  if (context.training && loss_ && !context.targets.defined()) {
    throw InputError(fmt::format(
        "module '{}' has a loss and no targets; give a loss to the last layer alone, and targets to every batch",
        name_));
  }
  // The deleter returns the copy of the module, whether or not a backward follows.
  const std::shared_ptr<InFlight> flight(new InFlight, [this](InFlight* done) {
    if (done->copy) give_back(std::move(done->copy));
    delete done;
  });
  flight->copy = take_copy(input.device());
  flight->copy->module->train(context.training);
  flight->input = input.detach();
  flight->targets = context.targets;
  const at::AutoGradMode recording(context.training);
  if (context.training && input.is_floating_point()) flight->input.requires_grad_();
  record(weights, *flight);
  const at::Tensor output = flight->output.detach();
  if (context.training) {
    flight->version = weights.version();
    saved.keep(Kept{flight, {}});
  }
  return output;
}

at::Tensor ModuleLayer::backward_input(const WeightView& weights, const at::Tensor& grad_output, Saved& saved) const {
  Kept& kept = saved.get<Kept>();
  const auto flight = std::exchange(kept.flight, nullptr);
  const at::AutoGradMode recording(true);
  const bool same_version = flight->version.is_known() && flight->version == weights.version();
  if (!same_version) record(weights, *flight);

  std::vector<at::Tensor> inputs = flight->copy->parameters;
  const bool has_input_gradient = flight->input.requires_grad();
  if (has_input_gradient) inputs.push_back(flight->input);
  // Those that the output does not depend on stay undefined.
  std::vector<at::Tensor> gradients(inputs.size());
  if (flight->output.requires_grad()) {
    gradients = torch::autograd::grad({flight->output}, inputs, {grad_output.to(flight->output.options())},
                                      /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  }
  at::Tensor grad_input;
  if (has_input_gradient) {
    grad_input = gradients.back().defined() ? gradients.back().detach() : at::zeros_like(flight->input);
    gradients.pop_back();
  }
  kept.gradients = std::move(gradients);
  return grad_input;
}

void ModuleLayer::backward_weights(Saved& saved, const GradientSums& gradients) const {
  const std::vector<at::Tensor>& own = saved.get<Kept>().gradients;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (own[i].defined()) gradients.add(i, own[i]);
  }
  saved.clear();
}

double ModuleLayer::cost(int64_t tokens) const {
  double count = 1;
  for (const auto& parameter : module_->parameters()) count += static_cast<double>(parameter.numel());
  return count * static_cast<double>(tokens);
}

}  // namespace gyre
