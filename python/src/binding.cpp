// The plug-in's C++ side: one parameter's optimizer state and its step, by the same code as gyre's own runs.
#include <torch/extension.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/optim/adamw.h"
#include "gyre/optim/basis_rotation.h"

namespace {

// Either rotated matrices (one per row block) or plain moments.
class Parameter {
 public:
  Parameter(const std::vector<int64_t>& shape, const std::string& device, bool rotate, int row_blocks,
            const gyre::OptimizerConfig& config)
      : config_(config) {
    if (!rotate) {
      gyre::ParameterSpec spec;
      spec.shape = shape;
      spec.decay = true;
      moments_ = std::make_unique<gyre::AdamMoments>(spec, at::Device(device));
      return;
    }
    for (int block = 0; block < row_blocks; ++block) {
      blocks_.emplace_back(config, row_blocks == 1 ? "" : "[" + std::to_string(block) + "]", shape[0] / row_blocks,
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
  gyre::OptimizerConfig config_;
  std::unique_ptr<gyre::AdamMoments> moments_;
  std::vector<gyre::RotatedMatrix> blocks_;
};

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  pybind11::register_exception<gyre::InputError>(module, "InputError", PyExc_ValueError);
  pybind11::class_<gyre::OptimizerConfig>(module, "Config")
      .def(pybind11::init<>())
      .def_readwrite("frequency", &gyre::OptimizerConfig::frequency)
      .def_readwrite("source", &gyre::OptimizerConfig::source)
      .def_readwrite("geometry", &gyre::OptimizerConfig::geometry)
      .def_readwrite("refresh", &gyre::OptimizerConfig::refresh)
      .def_readwrite("drift", &gyre::OptimizerConfig::drift)
      .def_readwrite("refresh_lag", &gyre::OptimizerConfig::refresh_lag)
      .def_readwrite("covariance_beta", &gyre::OptimizerConfig::covariance_beta)
      .def_readwrite("covariance_every", &gyre::OptimizerConfig::covariance_every)
      .def_readwrite("long_sides", &gyre::OptimizerConfig::long_sides)
      .def_readwrite("sketch", &gyre::OptimizerConfig::sketch)
      .def_readwrite("max_dimension", &gyre::OptimizerConfig::max_dimension)
      .def_readwrite("transport", &gyre::OptimizerConfig::transport)
      .def_readwrite("look_ahead", &gyre::OptimizerConfig::look_ahead)
      .def_readwrite("products", &gyre::OptimizerConfig::products)
      .def_readwrite("covariance_products", &gyre::OptimizerConfig::covariance_products)
      .def_readwrite("iteration_products", &gyre::OptimizerConfig::iteration_products);
  pybind11::class_<Parameter>(module, "Parameter")
      .def(pybind11::init<const std::vector<int64_t>&, const std::string&, bool, int, const gyre::OptimizerConfig&>())
      .def("step", &Parameter::step)
      .def("state", &Parameter::state)
      .def("load", &Parameter::load);
}
