// The C++ side of the Python package: one parameter's optimizer state and its step, with the same code as gyre's own
// runs.
#include <fmt/format.h>
#include <torch/extension.h>

#include <cmath>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/option_range.h"
#include "gyre/optim/parameter/basis_rotation.h"
#include "gyre/optim/parameter/matrix_parameter.h"
#include "gyre/optim/parameter/side_thread.h"
#include "gyre/optim/settings/optimizer_settings.h"

namespace {

// The matrices of one parameter, each treated alone, as gyre::MatrixParameter has them.
class Matrices {
 public:
  using Settings = gyre::BasisRotationSettings;
  using Config = gyre::RotationConfig;

  Matrices(const Config& config, const gyre::ParameterSpec& spec, std::vector<gyre::MatrixBlock> blocks,
           at::Device device)
      : blocks_(std::move(blocks)) {
    for (const gyre::MatrixBlock& block : blocks_) {
      rotated_.emplace_back(config, std::vector{block.name}, block.rows, block.columns, spec.decay, device);
    }
  }
  void step(const Config& config, const at::Tensor& weight, const at::Tensor& gradient,
            const gyre::UpdateContext& context) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      rotated_[i].step(config, std::vector{blocks_[i].of(weight)}, {blocks_[i].of(gradient)}, context);
    }
  }
  void save(gyre::NamedTensors& state) const {
    for (const gyre::RotatedMatrices& matrix : rotated_) matrix.save(state);
  }
  void load(const gyre::NamedTensors& state) {
    for (gyre::RotatedMatrices& matrix : rotated_) matrix.load(state);
  }

 private:
  std::vector<gyre::MatrixBlock> blocks_;
  std::vector<gyre::RotatedMatrices> rotated_;  // [block], of one matrix each
};

// The optimizer state of one torch parameter.
class Parameter {
 public:
  // `row_blocks`: as in gyre::ParameterSpec.
  Parameter(const std::vector<int64_t>& shape, const std::string& device, bool rotate,
            const std::vector<int64_t>& row_blocks, const gyre::BasisRotationSettings& settings)
      : config_{{}, settings}, parameter_(config_, spec(shape, rotate, row_blocks), at::Device(device)) {}

  // `weight` and `gradient` are fp32. Changes `weight` in place. `beside` must outlive the refreshes that it makes.
  void step(const at::Tensor& weight, const at::Tensor& gradient, int64_t update, double learning_rate,
            const gyre::AdamSettings& adam, double delay, double mean_delay, gyre::SideThread& beside) {
    const at::NoGradGuard no_grad;
    static_cast<gyre::AdamSettings&>(config_) = adam;
    gyre::UpdateContext context;
    context.update = update;
    context.learning_rate = learning_rate;
    context.delay = std::llround(delay);
    context.mean_delay = {delay, mean_delay};
    context.beside = &beside;
    parameter_.step(config_, weight, gradient, context);
  }

  // The state's own tensors, not copies, by name ("exp_avg", "[1]left_basis").
  std::map<std::string, at::Tensor> state() const {
    gyre::NamedTensors named;
    parameter_.save(named);
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
    parameter_.load(named);
  }

 private:
  static gyre::ParameterSpec spec(const std::vector<int64_t>& shape, bool rotate,
                                  const std::vector<int64_t>& row_blocks) {
    gyre::ParameterSpec spec;
    spec.shape = shape;
    spec.decay = true;
    spec.rotate = rotate;
    spec.row_blocks = row_blocks;
    return spec;
  }

  gyre::RotationConfig config_;
  gyre::MatrixParameter<Matrices> parameter_;
};

// The name that torch's optimizers use for an option of [optimizer]; null if they have no such option in a group.
const char* torch_name(const std::string& key) {
  for (const char* shared : {"lr", "betas", "weight_decay"}) {
    if (key == shared) return shared;
  }
  return key == "epsilon" ? "eps" : nullptr;
}

// The options of `settings` as a list of (name, default, meaning).
template <typename Settings, typename NameOf>
pybind11::list described(Settings settings, NameOf&& name_of) {
  pybind11::list options;
  Settings::each_option(settings, [&](const char* key, auto& field, const gyre::Range&, const char* meaning) {
    if (const char* name = name_of(key)) options.append(pybind11::make_tuple(name, field, meaning));
  });
  return options;
}

// Reads the options from a parameter group. Throws InputError for an option that is missing, of another type or out of
// range.
template <typename Settings, typename NameOf>
void read(Settings& settings, const pybind11::dict& group, NameOf&& name_of) {
  Settings::each_option(settings, [&](const char* key, auto& field, const gyre::Range& range, const char*) {
    using Field = std::remove_cvref_t<decltype(field)>;
    const char* name = name_of(key);
    if (name == nullptr) return;
    if (!group.contains(name)) throw gyre::InputError(fmt::format("BasisRotation: {} is missing from a group", name));
    const pybind11::object value = group[name];
    try {
      field = value.cast<Field>();
    } catch (const pybind11::cast_error&) {
      throw gyre::InputError(fmt::format("BasisRotation: {}={} has the wrong type; give {}", name,
                                         pybind11::repr(value).cast<std::string>(), gyre::type_name<Field>()));
    }
    gyre::check_range(fmt::format("BasisRotation: {}", name), field, range);
  });
}

const char* same_name(const char* key) {
  return key;
}

// The defaults of [optimizer] for basis rotation.
gyre::OptimizerSettings common_settings() {
  gyre::OptimizerSettings settings;
  settings.kind = "basis-rotation";
  settings.betas = gyre::optimizer_kinds().at(settings.kind).betas;
  return settings;
}

gyre::AdamSettings adam_settings(const pybind11::dict& group) {
  gyre::OptimizerSettings settings = common_settings();
  read(settings, group, torch_name);
  gyre::check_faults("BasisRotation:", gyre::faults_of(settings));
  return gyre::adam_settings(settings);
}

gyre::BasisRotationSettings rotation_settings(const pybind11::dict& group) {
  gyre::BasisRotationSettings settings;
  read(settings, group, same_name);
  gyre::check_faults("BasisRotation:", gyre::faults_of(settings));
  const auto delay = group["delay"].cast<double>(), mean_delay = group["mean_delay"].cast<double>();
  if (gyre::refreshes_by_delay(settings) && delay > 0 && !(mean_delay > 0)) {
    throw gyre::InputError(fmt::format(
        "BasisRotation: mean_delay is {}; give the mean delay of the pipeline's stages, which refresh=\"{}\" needs: "
        "(P - 1) / 2 for PipeDream's P",
        mean_delay, settings.refresh));
  }
  return settings;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  pybind11::register_exception<gyre::InputError>(module, "InputError", PyExc_ValueError);
  // gyre's own options as (key, default, meaning): those of [optimizer] that torch's optimizers have too, and
  // all of [optimizer.basis-rotation].
  module.def("common_options", [] { return described(common_settings(), torch_name); });
  module.def("options", [] { return described(gyre::BasisRotationSettings(), same_name); });
  module.attr("max_skipped") = gyre::OptimizerSettings().max_skipped;
  // The settings of a parameter group. They throw InputError for a value out of range, and for values that contradict
  // each other.
  module.def("adam_settings", &adam_settings);
  module.def("rotation_settings", &rotation_settings);
  pybind11::class_<gyre::AdamSettings>(module, "AdamSettings");
  pybind11::class_<gyre::BasisRotationSettings>(module, "RotationSettings");
  pybind11::class_<gyre::SideThread>(module, "SideThread").def(pybind11::init<>());
  pybind11::class_<Parameter>(module, "Parameter")
      .def(pybind11::init<const std::vector<int64_t>&, const std::string&, bool, const std::vector<int64_t>&,
                          const gyre::BasisRotationSettings&>())
      .def("step", &Parameter::step, pybind11::call_guard<pybind11::gil_scoped_release>())
      .def("state", &Parameter::state)
      .def("load", &Parameter::load);
}
