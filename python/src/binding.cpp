// The plug-in's C++ side: one parameter's optimizer state and its step, by the same code as gyre's own runs.
#include <fmt/format.h>
#include <torch/extension.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/option_range.h"
#include "gyre/optim/adamw.h"
#include "gyre/optim/basis_rotation.h"

namespace {

// Either rotated matrices (one per row block) or plain moments.
class Parameter {
 public:
  Parameter(const std::vector<int64_t>& shape, const std::string& device, bool rotate, int row_blocks,
            const gyre::BasisRotationSettings& settings)
      : config_{{}, settings} {
    if (!rotate) {
      gyre::ParameterSpec spec;
      spec.shape = shape;
      spec.decay = true;
      moments_ = std::make_unique<gyre::AdamMoments>(spec, at::Device(device));
      return;
    }
    for (int block = 0; block < row_blocks; ++block) {
      blocks_.emplace_back(config_, row_blocks == 1 ? "" : "[" + std::to_string(block) + "]", shape[0] / row_blocks,
                           shape[1], true, at::Device(device));
    }
  }

  // weight and gradient: fp32; the weight is changed in place.
  void step(const at::Tensor& weight, const at::Tensor& gradient, int64_t update, double learning_rate,
            const std::vector<double>& betas, double epsilon, double weight_decay, double delay, double mean_delay) {
    const at::NoGradGuard no_grad;
    config_.beta1 = betas[0];
    config_.beta2 = betas[1];
    config_.epsilon = epsilon;
    config_.weight_decay = weight_decay;
    gyre::UpdateContext context;
    context.update = update;
    context.learning_rate = learning_rate;
    context.delay = std::llround(delay);
    context.mean_delay = {delay, mean_delay};
    if (moments_) moments_->step(config_, weight, gradient, context);
    for (size_t block = 0; block < blocks_.size(); ++block) {
      const int64_t rows = weight.size(0) / static_cast<int64_t>(blocks_.size());
      const int64_t begin = static_cast<int64_t>(block) * rows;
      blocks_[block].step(config_, weight.narrow(0, begin, rows), gradient.narrow(0, begin, rows), context);
    }
  }

  // Live tensors by name ("exp_avg", "[1]left_basis").
  std::map<std::string, at::Tensor> state() const {
    gyre::NamedTensors named;
    if (moments_) moments_->save(named);
    for (const auto& block : blocks_) block.save(named);
    std::map<std::string, at::Tensor> plain;
    for (const auto& [name, tensor] : named) {
      std::string key = name;
      key.erase(key.find('/'), 1);
      plain[key] = tensor;
    }
    return plain;
  }

  void load(const std::map<std::string, at::Tensor>& plain) {
    gyre::NamedTensors named;
    for (const auto& [key, tensor] : plain) {
      const size_t end = key.find(']');
      const size_t at = end == std::string::npos ? 0 : end + 1;
      named[key.substr(0, at) + "/" + key.substr(at)] = tensor;
    }
    if (moments_) moments_->load(named);
    for (auto& block : blocks_) block.load(named);
  }

 private:
  gyre::RotationConfig config_;
  std::unique_ptr<gyre::AdamMoments> moments_;
  std::vector<gyre::RotatedMatrix> blocks_;
};

pybind11::list described(gyre::BasisRotationSettings settings) {
  pybind11::list options;
  gyre::BasisRotationSettings::each_option(settings,
                                           [&](const char* key, auto& field, const gyre::Range&, const char* meaning) {
                                             options.append(pybind11::make_tuple(key, field, meaning));
                                           });
  return options;
}

// Settings with the values of a dict of all options.
gyre::BasisRotationSettings settings_of(const pybind11::dict& values) {
  gyre::BasisRotationSettings settings;
  gyre::BasisRotationSettings::each_option(
      settings, [&](const char* key, auto& field, const gyre::Range& range, const char*) {
        const pybind11::object value = values[key];
        try {
          field = value.cast<std::remove_cvref_t<decltype(field)>>();
        } catch (const pybind11::cast_error&) {
          throw gyre::InputError(fmt::format("BasisRotation: {}={} is not what it must be: {}", key,
                                             pybind11::repr(value).cast<std::string>(),
                                             gyre::type_name<std::remove_cvref_t<decltype(field)>>()));
        }
        gyre::check_range(fmt::format("BasisRotation: {}", key), field, range);
      });
  for (const gyre::OptionFault& fault : gyre::faults_of(settings)) {
    throw gyre::InputError(fmt::format("BasisRotation: {} {}", fault.keys[0], fault.what));
  }
  return settings;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  pybind11::register_exception<gyre::InputError>(module, "InputError", PyExc_ValueError);
  // The declared options: a list of (key, default, meaning).
  module.def("options", [] { return described(gyre::BasisRotationSettings()); });
  // (betas, epsilon, weight decay) where none are given.
  module.def("adam", [] {
    const gyre::OptimizerKind& kind = gyre::optimizer_kinds().at("basis-rotation");
    const gyre::AdamSettings adam;
    return pybind11::make_tuple(kind.betas, adam.epsilon, adam.weight_decay);
  });
  // InputError for a value out of range, and for values that do not go together.
  module.def("settings", &settings_of);
  pybind11::class_<gyre::BasisRotationSettings>(module, "Settings");
  pybind11::class_<Parameter>(module, "Parameter")
      .def(pybind11::init<const std::vector<int64_t>&, const std::string&, bool, int,
                          const gyre::BasisRotationSettings&>())
      .def("step", &Parameter::step)
      .def("state", &Parameter::state)
      .def("load", &Parameter::load);
}
