// The C++ side of the Python package: the optimizer state of parameters and their step, with the same code as gyre's
// own runs.
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/extension.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/option_range.h"
#include "gyre/optim/parameter/side_thread.h"
#include "gyre/optim/rotating_optimizer.h"
#include "gyre/optim/settings/optimizer_settings.h"

namespace {

using StateOfOne = std::map<std::string, at::Tensor>;  // by name: "exp_avg", "[1]left_basis"

// The optimizer of parameters that are stepped together, with their state.
class Parameters {
 public:
  // One entry for each parameter in all of these. `names` are for messages, without '/' or '['; `row_blocks` as in
  // gyre::ParameterSpec.
  Parameters(const std::vector<std::string>& names, const std::vector<std::vector<int64_t>>& shapes,
             const std::vector<bool>& rotate, const std::vector<std::vector<int64_t>>& row_blocks,
             const std::string& device, const gyre::BasisRotationSettings& settings)
      : names_(names), optimizer_(config(settings), specs(names, shapes, rotate, row_blocks), at::Device(device)) {}

  // `weights` and `gradients` are fp32. Changes weights in place. `beside` must outlive the refreshes that it makes.
  void step(const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& gradients, int64_t update,
            double learning_rate, const gyre::AdamSettings& adam, double delay, double mean_delay,
            gyre::SideThread& beside) {
    const at::NoGradGuard no_grad;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    gyre::UpdateContext context;
    context.update = update;
    context.learning_rate = learning_rate;
    context.delay = std::llround(delay);
    context.mean_delay = {delay, mean_delay};
    context.beside = &beside;
    optimizer_.set(adam);
    optimizer_.step(weights, gradients, context);
    // Our kernels write past autograd, which then refuses a backward pass with weights it saved before.
    for (const at::Tensor& weight : weights) weight.unsafeGetTensorImpl()->bump_version();
  }

  // The state's own tensors, not copies, by parameter.
  std::vector<StateOfOne> state() const {
    std::map<std::string, StateOfOne> by_name;
    for (const auto& [full, tensor] : optimizer_.state()) {
      const size_t end = full.find_first_of("/[");
      std::string key = full.substr(end);
      key.erase(key.find('/'), 1);
      by_name[full.substr(0, end)][key] = tensor;
    }
    std::vector<StateOfOne> result;
    for (const std::string& name : names_) result.push_back(by_name[name]);
    return result;
  }

  void load(const std::vector<StateOfOne>& states) {
    gyre::NamedTensors named;
    for (size_t i = 0; i < names_.size(); ++i) {
      for (const auto& [key, tensor] : states.at(i)) {
        const size_t end = key.find(']');
        const size_t at = end == std::string::npos ? 0 : end + 1;
        named[names_[i] + key.substr(0, at) + "/" + key.substr(at)] = tensor;
      }
    }
    optimizer_.load_state(named);
  }

 private:
  static gyre::OptimizerConfig config(const gyre::BasisRotationSettings& settings) {
    gyre::OptimizerConfig config;
    config.own = settings;
    return config;
  }
  static std::vector<gyre::ParameterSpec> specs(const std::vector<std::string>& names,
                                                const std::vector<std::vector<int64_t>>& shapes,
                                                const std::vector<bool>& rotate,
                                                const std::vector<std::vector<int64_t>>& row_blocks) {
    std::vector<gyre::ParameterSpec> specs(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      specs[i].name = names[i];
      specs[i].shape = shapes.at(i);
      specs[i].decay = true;
      specs[i].rotate = rotate.at(i);
      specs[i].row_blocks = row_blocks.at(i);
    }
    return specs;
  }

  std::vector<std::string> names_;
  gyre::RotatingOptimizer optimizer_;
};

// A refresh on the side thread needs the GIL when it lets go of a tensor that Python has seen. So nothing here waits
// for one, or for the thread's end, with the GIL.
using WithoutGil = pybind11::call_guard<pybind11::gil_scoped_release>;
struct EndWithoutGil {
  void operator()(gyre::SideThread* thread) const {
    const pybind11::gil_scoped_release released;
    std::default_delete<gyre::SideThread>()(thread);
  }
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
  pybind11::class_<gyre::SideThread, std::unique_ptr<gyre::SideThread, EndWithoutGil>>(module, "SideThread")
      .def(pybind11::init<>())
      .def("finish", &gyre::SideThread::finish, WithoutGil());
  pybind11::class_<Parameters>(module, "Parameters")
      .def(pybind11::init<const std::vector<std::string>&, const std::vector<std::vector<int64_t>>&,
                          const std::vector<bool>&, const std::vector<std::vector<int64_t>>&, const std::string&,
                          const gyre::BasisRotationSettings&>())
      .def("step", &Parameters::step, WithoutGil())
      .def("state", &Parameters::state, WithoutGil())
      .def("load", &Parameters::load, WithoutGil());
}
