#include "gyre/optim/parameter/basis_rotation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/optim/parameter/mixed_kernels.h"
#include "gyre/optim/parameter/stacks.h"
#include "gyre/optim/parameter/state.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// Of the sides, in names of state.
constexpr const char* kLeft = "/left";
constexpr const char* kRight = "/right";

Bf16Products bf16_products(const BasisRotationSettings& config) {
  return {config.products == "bf16", config.covariance_products == "bf16", config.iteration_products == "bf16"};
}

double covariance_beta(const RotationConfig& config) {
  return config.covariance_beta > 0 ? config.covariance_beta : config.beta2;
}

// How many directions of each side of a (rows, columns) matrix are rotated: all of them, fewer (a sketch), or none.
struct RotatedDirections {
  int64_t left, right;
};

int64_t directions_of_side(const BasisRotationSettings& config, int64_t size, int64_t other) {
  // Less than twice as long, a sketch costs no less than the whole: it takes two products where that takes one.
  const bool is_long = size >= 2 * other;
  const int64_t directions = is_long && config.long_sides == "thin" ? other : size;
  return config.max_dimension > 0 && size > config.max_dimension ? std::min(directions, config.sketch) : directions;
}

RotatedDirections rotated_directions(const BasisRotationSettings& config, int64_t rows, int64_t columns) {
  const bool both = config.geometry == "bilateral";
  return {both || rows <= columns ? directions_of_side(config, rows, columns) : 0,
          both || rows > columns ? directions_of_side(config, columns, rows) : 0};
}

RotationBasisOptions basis_options(const BasisRotationSettings& config, int64_t size, int64_t directions) {
  RotationBasisOptions options;
  options.rank = directions < size ? directions : 0;
  options.keeps_covariance = config.source == "second";
  options.bf16 = bf16_products(config);
  return options;
}

}  // namespace

RotatedMatrices::RotatedMatrices(const RotationConfig& config, std::vector<std::string> names, int64_t rows,
                                 int64_t columns, bool decay, at::Device device)
    : names_(std::move(names)),
      decay_(decay),
      keeps_covariance_(config.source == "second"),
      bf16_(bf16_products(config)) {
  const auto matrices = static_cast<int64_t>(names_.size());
  const RotatedDirections directions = rotated_directions(config, rows, columns);
  const auto make = [&](std::optional<RotationBasis>& side, int64_t size, int64_t of_side) {
    if (of_side > 0) side.emplace(size, basis_options(config, size, of_side), device, matrices);
    return side ? side->coordinates() : size;
  };
  const auto zeros = [&](int64_t left, int64_t right, at::ScalarType type) {
    const auto options = at::TensorOptions().dtype(type).device(device);
    return stacked() ? at::zeros({matrices, left, right}, options) : at::zeros({left, right}, options);
  };
  const int64_t left = make(left_, rows, directions.left), right = make(right_, columns, directions.right);
  exp_avg_ = zeros(left, right, moments_type(config));
  exp_avg_sq_ = at::zeros_like(exp_avg_);
  if (config.look_ahead > 0) ahead_ = zeros(rows, columns, at::kFloat);
}

int64_t RotatedMatrices::most_in_a_stack(int64_t rows, int64_t columns, at::Device device) {
  if (device.is_cpu()) return 1;
  // Enough for kernels that take longer than their launch. What a step makes on its way is as large, several times.
  constexpr int64_t kElements = int64_t{1} << 24;
  return std::max<int64_t>(1, kElements / rows / columns);  // a wrong configuration's product may fit no integer
}

double RotatedMatrices::state_bytes(const RotationConfig& config, const MatrixBlock& block) {
  const int64_t rows = block.rows, columns = block.columns;
  constexpr double kFloat = 4;
  const RotatedDirections directions = rotated_directions(config, rows, columns);
  double bytes = 0;
  const auto count = [&](int64_t size, int64_t of_side) {
    if (of_side == 0) return static_cast<double>(size);
    const RotationBasisOptions options = basis_options(config, size, of_side);
    bytes += RotationBasis::state_bytes(size, options);
    return static_cast<double>(RotationBasis::coordinates(size, options));
  };
  const double left = count(rows, directions.left), right = count(columns, directions.right);
  if (config.look_ahead > 0) bytes += static_cast<double>(rows) * static_cast<double>(columns) * kFloat;
  return bytes + 2 * left * right * static_cast<double>(at::elementSize(moments_type(config)));
}

double RotatedMatrices::update_cost(const RotationConfig& config, const MatrixBlock& block) {
  const int64_t rows = block.rows, columns = block.columns;
  const RotatedDirections directions = rotated_directions(config, rows, columns);
  const auto interval = static_cast<double>(config.interval);
  const double covariances =
      config.source == "second" ? 1 / static_cast<double>(std::min(config.covariance_every, config.interval)) : 0;
  const auto count = [&](int64_t size, int64_t of_side, int64_t other) {
    if (of_side == 0) return 0.0;
    const RotationCost cost = RotationBasis::cost(size, basis_options(config, size, of_side), other);
    // Gradients are rotated and directions rotated back; at a refresh the first moment goes both ways.
    return 2 * (1 + 1 / interval) * cost.rotation + covariances * cost.covariance + cost.refresh / interval;
  };
  return count(rows, directions.left, columns) + count(columns, directions.right, rows);
}

bool RotatedMatrices::untouched() const {
  return !(left_ && left_->ready()) && !(right_ && right_->ready());
}

at::Tensor RotatedMatrices::own_coordinates(const at::Tensor& moments) const {
  const at::Tensor rows = left_ ? left_->rest(moments, 0) : moments;
  return right_ ? right_->rest(rows, 1) : rows;
}

void RotatedMatrices::step(const RotationConfig& config, const std::vector<at::Tensor>& weights,
                           const std::vector<at::Tensor>& gradients, const UpdateContext& context) {
  if (!stacked()) return step_all(config, weights[0], gradients[0], context);
  const at::Tensor weight = at::stack(weights);
  step_all(config, weight, at::stack(gradients), context);
  copy_each<at::TensorList>(weights, weight.unbind());
}

void RotatedMatrices::step(const RotationConfig& config, const std::vector<SplitWeight>& weights,
                           const std::vector<at::Tensor>& gradients, const UpdateContext& context) {
  if (!stacked() && !ahead_.defined()) {
    step_from_here(config, weights[0], gradients[0], context);
    return;
  }
  std::vector<at::Tensor> whole;
  for (const SplitWeight& weight : weights) whole.push_back(joined(weight));
  step(config, whole, gradients, context);
  for (size_t i = 0; i < weights.size(); ++i) split(whole[i], weights[i]);
}

void RotatedMatrices::step_all(const RotationConfig& config, const at::Tensor& weight, const at::Tensor& gradient,
                               const UpdateContext& context) {
  if (ahead_.defined()) weight.sub_(ahead_);
  const at::Tensor rotated = step_from_here(config, weight, gradient, context);
  if (!ahead_.defined() || !rotated.defined()) return;
  const double distance = static_cast<double>(context.delay) * context.learning_rate;
  ahead_.copy_(rotate_back(of_little_curvature(rotated, config.look_ahead)).to(at::kFloat) * -distance);
  weight.add_(ahead_);
}

template <typename Weight>
at::Tensor RotatedMatrices::step_from_here(const RotationConfig& config, const Weight& weight,
                                           const at::Tensor& gradient, const UpdateContext& context) {
  // Rounded once, for all products that take it so.
  const bool large = std::min(gradient.size(-2), gradient.size(-1)) >= kBf16From;
  const at::Tensor rounded = large && (bf16_.rotation || bf16_.covariance) ? to_bf16(gradient) : gradient;
  const std::optional<double> beta = averaging_beta(config, context.update);
  AccumulationBetas while_rotating;
  {
    const ProfileScope scope("gyre::rotation_covariances");
    const at::Tensor& x = bf16_.covariance ? rounded : gradient;
    if (accumulate(left_, x, 0, beta)) while_rotating.left = beta;
    if (accumulate(right_, x, 1, beta)) while_rotating.right = beta;
  }
  refresh_if_due(gradient, config, context);
  const AdamFactors factors = adam_factors(config.beta1, config.beta2, config.epsilon, context.update);
  const double decay = decay_ ? context.learning_rate * config.weight_decay : 0;
  if (untouched()) {
    const at::Tensor first = own_coordinates(exp_avg_), second = own_coordinates(exp_avg_sq_);
    const at::Tensor m = first.contiguous(), v = second.contiguous();
    adamw_step(weight, gradient, m, v, factors, context.learning_rate, decay);
    first.copy_(m);
    second.copy_(v);
    return {};
  }
  at::Tensor rotated;
  {
    const ProfileScope scope("gyre::rotation_rotating");
    rotated = rotate(bf16_.rotation ? rounded : gradient, while_rotating).to(at::kFloat).contiguous();
  }
  {
    const ProfileScope scope("gyre::rotation_adam");
    adam_direction(rotated, exp_avg_, exp_avg_sq_, factors);
  }
  at::Tensor direction;
  {
    const ProfileScope scope("gyre::rotation_rotating");
    direction = rotate_back(rotated);
  }
  subtract_scaled(weight, direction, context.learning_rate, 1 - decay);
  return rotated;
}

at::Tensor RotatedMatrices::of_little_curvature(const at::Tensor& direction, double share) const {
  // Bases come with eigenvalues descending, in a sketch those it holds; a side without a basis has no order.
  const auto clear = [&](const std::optional<RotationBasis>& side, int64_t which) {
    if (!side || !side->ready()) return;
    const auto steep = std::llround((1 - share) * static_cast<double>(side->size()));
    direction.narrow(dimension_of(which), 0, std::min<int64_t>(steep, side->directions())).zero_();
  };
  clear(left_, 0);
  clear(right_, 1);
  return direction;
}

// A sketch makes a matrix larger, so it comes last. Without one the left side comes last: its product has a transposed
// factor, and so an fp32 result at no cost. A sketch's covariance is the same whether or not the other side is rotated.
at::Tensor RotatedMatrices::rotate(const at::Tensor& x, const AccumulationBetas& betas) {
  const auto rotated = [](std::optional<RotationBasis>& basis, const at::Tensor& y, int64_t side,
                          std::optional<double> beta) {
    if (!basis) return y;
    return beta ? basis->rotate_and_accumulate(y, side, *beta) : basis->rotate(y, side);
  };
  const auto left = [&](const at::Tensor& y) { return rotated(left_, y, 0, betas.left); };
  const auto right = [&](const at::Tensor& y) { return rotated(right_, y, 1, betas.right); };
  return right_ && right_->is_sketch() ? right(left(x)) : left(right(x));
}

at::Tensor RotatedMatrices::rotate_back(const at::Tensor& x) const {
  const auto left = [&](const at::Tensor& y) { return left_ ? left_->rotate_back(y, 0) : y; };
  const auto right = [&](const at::Tensor& y) { return right_ ? right_->rotate_back(y, 1) : y; };
  return left_ && left_->is_sketch() ? right(left(x)) : left(right(x));
}

std::optional<double> RotatedMatrices::averaging_beta(const RotationConfig& config, int64_t update) const {
  const int64_t every = std::min(config.covariance_every, config.interval);
  if (!keeps_covariance_ || update % every != 0) return {};
  return std::pow(covariance_beta(config), static_cast<double>(every));
}

bool RotatedMatrices::accumulate(std::optional<RotationBasis>& basis, const at::Tensor& gradient, int64_t side,
                                 std::optional<double> beta) {
  if (!basis || !beta) return false;
  if (basis->accumulates_as_it_rotates()) return true;
  basis->accumulate(gradient, side, *beta);
  return false;
}

RotatedMatrices::Covariances RotatedMatrices::covariances(const at::Tensor& gradient,
                                                          const RotationConfig& config) const {
  Covariances result;
  if (keeps_covariance_) {
    if (left_) result.left = left_->covariance();
    if (right_) result.right = right_->covariance();
    return result;
  }
  const at::Tensor momentum = rotate_back(exp_avg_.to(at::kFloat)).to(at::kFloat) * config.beta1 +
                              gradient * (1 - config.beta1);  // as it is about to be
  if (left_) result.left = left_->image(momentum, 0);
  if (right_) result.right = right_->image(momentum, 1);
  return result;
}

int64_t RotatedMatrices::refresh_interval(const RotationConfig& config, const UpdateContext& context) const {
  const bool cold = (left_ && !left_->ready()) || (right_ && !right_->ready());
  const double mean = context.mean_delay.all_stages;
  if (!refreshes_by_delay(config) || cold || mean == 0) return config.interval;
  // A stage without delay refreshes too: as if it had half an update's, or half the mean where that is less.
  const double delay = std::max(context.mean_delay.stage, 0.5 * std::min(1.0, mean));
  const double interval = static_cast<double>(config.interval) * mean / delay;
  return std::max<int64_t>(1, std::llround(interval));
}

void RotatedMatrices::refresh_if_due(const at::Tensor& gradient, const RotationConfig& config,
                                     const UpdateContext& context) {
  if (!left_ && !right_) return;
  const int64_t interval = refresh_interval(config, context);
  const int64_t lag = std::min(config.refresh_lag, interval - 1);
  const bool prepared = (left_ && left_->has_prepared()) || (right_ && right_->has_prepared());
  if (prepared && context.update % interval == lag) take(config);
  if (context.update % interval != 0) return;
  const bool cold = (left_ && !left_->ready()) || (right_ && !right_->ready());
  const Covariances found = covariances(gradient, config);
  at::Tensor wanted;  // undefined: whatever the bases are
  if (config.refresh == "adaptive" && !cold) {
    wanted = has_drifted(found, config);
    // A number that is at hand saves the decomposition. On other devices it is made, and chosen or left there.
    if (wanted.is_cpu() && !stacked() && !wanted.item<bool>()) return;
  }
  // bc over a whole interval; at first the mean of what was seen.
  const double beta = std::min(std::pow(covariance_beta(config), static_cast<double>(interval)),
                               1 - static_cast<double>(interval) / static_cast<double>(context.update));
  prepare(found, beta, lag > 0 ? context.beside : nullptr, wanted);
  if (lag == 0) take(config);
}

at::Tensor RotatedMatrices::has_drifted(const Covariances& covariances, const RotationConfig& config) const {
  const at::Tensor left = left_ ? left_->drift(covariances.left) : at::Tensor();
  const at::Tensor right = right_ ? right_->drift(covariances.right) : at::Tensor();
  const at::Tensor drift = left.defined() && right.defined() ? at::fmax(left, right) : left.defined() ? left : right;
  return drift > config.drift;
}

void RotatedMatrices::prepare(const Covariances& covariances, double beta, SideThread* beside,
                              const at::Tensor& wanted) {
  const ProfileScope scope("gyre::rotation_refresh");
  if (left_) left_->prepare(covariances.left, beta, beside, wanted);
  if (right_) right_->prepare(covariances.right, beta, beside, wanted);
}

void RotatedMatrices::take(const RotationConfig& config) {
  const ProfileScope scope("gyre::rotation_moments");
  const at::Tensor momentum = rotate_back(exp_avg_.to(at::kFloat));
  at::Tensor variances = exp_avg_sq_.to(at::kFloat);
  if (left_) variances = left_->carry_variances(variances, 0, left_->take(config.transport));
  if (right_) variances = right_->carry_variances(variances, 1, right_->take(config.transport));
  exp_avg_.copy_(rotate(momentum, {}));
  exp_avg_sq_.copy_(variances);
}

std::vector<std::string> RotatedMatrices::prefixes(const char* side) const {
  std::vector<std::string> result;
  for (const std::string& name : names_) result.push_back(name + side);
  return result;
}

void RotatedMatrices::save(NamedTensors& state) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto own = [&](const at::Tensor& x) { return at_place(x, static_cast<int64_t>(i), stacked()); };
    state[names_[i] + "/exp_avg"] = own(exp_avg_);
    state[names_[i] + "/exp_avg_sq"] = own(exp_avg_sq_);
    if (ahead_.defined()) state[names_[i] + "/ahead"] = own(ahead_);
  }
  if (left_) left_->save(prefixes(kLeft), state);
  if (right_) right_->save(prefixes(kRight), state);
}

void RotatedMatrices::load(const NamedTensors& state) {
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto own = [&](const at::Tensor& x) { return at_place(x, static_cast<int64_t>(i), stacked()); };
    load_tensor(state, names_[i] + "/exp_avg", own(exp_avg_));
    load_tensor(state, names_[i] + "/exp_avg_sq", own(exp_avg_sq_));
    if (ahead_.defined()) load_tensor(state, names_[i] + "/ahead", own(ahead_));
  }
  if (left_) left_->load(prefixes(kLeft), state);
  if (right_) right_->load(prefixes(kRight), state);
}

SavedBases saved_bases(const NamedTensors& state, const std::string& matrix) {
  return {RotationBasis::saved_vectors(matrix + kLeft, state), RotationBasis::saved_vectors(matrix + kRight, state)};
}

// A refresh holds most: copies of the basis that it makes, which are iterated, ordered and decomposed, and the other
// side's new basis; with source "first" also the momentum and what both bases are made of.
double RotatedMatrices::step_bytes(const RotationConfig& config, const MatrixBlock& block, bool in_halves) {
  constexpr double kFloat = 4;
  // In the background they are made where passing_bytes counts bases that are yet to be made.
  const double copies = config.refresh_lag > 0 ? 4 : 7;
  const double matrix = static_cast<double>(block.rows) * static_cast<double>(block.columns) * kFloat;
  const RotatedDirections directions = rotated_directions(config, block.rows, block.columns);
  const double left = static_cast<double>(block.rows) * static_cast<double>(directions.left) * kFloat,
               right = static_cast<double>(block.columns) * static_cast<double>(directions.right) * kFloat;
  const double made = std::max(copies * left, copies * right + left);
  const double from = config.source == "first" ? matrix + left + right : 0;
  // Looking ahead, the weight is made whole.
  return made + from + matrix / 2 + (config.look_ahead > 0 && in_halves ? matrix : 0);
}

// The bases in bf16, for products. From a refresh in the background until its bases are taken also each side's next
// basis, with eigenvalues and the order of the columns, and the copies that it is made from, of the covariance and the
// basis.
PassingBytes RotatedMatrices::passing_bytes(const RotationConfig& config, const MatrixBlock& block) {
  PassingBytes bytes;
  constexpr double kFloat = 4, kLong = 8;
  constexpr double kEntries = 432;  // of a tensor in a file's header and an index, but for the matrix's name twice
  const RotatedDirections directions = rotated_directions(config, block.rows, block.columns);
  for (const auto& [size, of_side] : {std::pair(block.rows, directions.left), {block.columns, directions.right}}) {
    if (of_side == 0) continue;
    const auto columns = static_cast<double>(of_side);
    const double basis = static_cast<double>(size) * columns * kFloat;
    if (bf16_products(config).rotation && of_side >= kBf16From) bytes.held += basis / 2;
    if (config.refresh_lag == 0) continue;
    bytes.held += 3 * basis + 2 * columns * kFloat + columns * kLong;
    bytes.saved += basis + 2 * columns * kFloat + 3 * (kEntries + 2 * static_cast<double>(block.name.size()));
  }
  return bytes;
}

}  // namespace gyre
