// Basis rotation against the formulas of docs/optimizers.md, written out in fp64: every way to rotate, over several
// refreshes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "gyre/core/random.h"

namespace gyre {
namespace {

using namespace testing_support;

struct Factors {
  at::Tensor q, scales;  // R's diagonal
};
Factors orthonormal(const at::Tensor& a) {
  auto [q, r] = at::linalg_qr(a);
  const at::Tensor signs = at::where(r.diagonal() < 0, -at::ones_like(r.diagonal()), at::ones_like(r.diagonal()));
  return {q * signs, r.diagonal() * signs};
}

at::Tensor y0(int64_t size, int64_t directions) {
  at::Tensor values = at::empty({size, directions}, at::kFloat);
  RandomStream(0, StreamPurpose::Sketch, static_cast<uint64_t>(size))
      .fill_normal({values.data_ptr<float>(), static_cast<size_t>(values.numel())}, 1);
  return orthonormal(values.to(at::kDouble)).q;
}

// One side of a matrix. Whatever it is given has that side as rows.
class Side {
 public:
  Side(int64_t size, int64_t directions, bool first)
      : size_(size), directions_(directions), first_(first), covariance_(zeros(size, directions)) {
    if (thin()) y0_ = y0(size, directions);
  }

  bool thin() const { return directions_ < size_; }
  bool ready() const { return basis_.defined(); }
  bool averages_late() const { return thin() && ready(); }
  const at::Tensor& covariance() const { return covariance_; }
  int64_t coordinates() const { return thin() ? size_ + directions_ : size_; }
  int64_t steep(double share) const {
    return std::min<int64_t>(directions_, std::llround((1 - share) * static_cast<double>(size_)));
  }

  at::Tensor turn() const {
    const at::Tensor one = at::eye(size_, at::kDouble);
    if (!thin()) return ready() ? basis_.t() : one;
    if (!ready()) return at::cat({zeros(directions_, size_), one});
    return at::cat({basis_.t(), one - basis_.mm(basis_.t())});
  }
  at::Tensor image(const at::Tensor& x) const { return thin() ? x.mm(x.t().mm(ready() ? basis_ : y0_)) : x.mm(x.t()); }
  void average(const at::Tensor& x, double beta) { covariance_ = beta * covariance_ + (1 - beta) * image(x); }
  double drift(const at::Tensor& c) const {
    const at::Tensor b = basis_.t().mm(thin() ? c : c.mm(basis_));
    return (1 - (b.diagonal().norm() / b.norm()).square()).clamp_min(0).sqrt().item<double>();
  }

  // From covariance c.
  void prepare(const at::Tensor& c, double b) {
    Next next;
    if (!ready() && thin()) {
      const auto [q, scales] = orthonormal(c / c.norm() + 1e-7 * y0_);
      next = {q, {}, scales * c.norm()};
    } else if (!ready()) {
      const auto [values, vectors] = at::linalg_eigh(c);
      next = {vectors.flip(1), {}, values.flip(0)};
    } else {
      at::Tensor moved = thin() ? c : c.mm(basis_);
      const double size = (thin() ? c.norm() : c.trace()).item<double>();
      if (first_) moved = b * basis_ * eigenvalues_ + (1 - b) * moved;
      const at::Tensor order = (basis_ * moved).sum(0).argsort(0, /*descending=*/true);
      const at::Tensor old = basis_.index_select(1, order);
      const auto [q, scales] = orthonormal(moved.index_select(1, order) + (1e-7 * size + 1e-30) * old);
      next = {q, order, scales};
    }
    next_ = next;
  }
  // Second moments after the prepared basis has become the basis.
  at::Tensor take(const at::Tensor& v, bool transport) {
    const Next next = *std::exchange(next_, std::nullopt);
    const at::Tensor old = std::exchange(basis_, next.basis);
    eigenvalues_ = next.eigenvalues;
    if (thin()) {
      covariance_ = covariance_.mm((old.defined() ? old : y0_).t().mm(basis_));
      const at::Tensor held = v.narrow(0, 0, directions_), rest = v.narrow(0, directions_, size_);
      if (old.defined()) return at::cat({held.index_select(0, next.order), rest});
      return at::cat({basis_.square().t().mm(rest), rest * (1 - basis_.square().sum(1, true)).clamp_min(0)});
    }
    if (!old.defined()) return basis_.square().t().mm(v);
    const at::Tensor followed = v.index_select(0, next.order);
    if (!transport) return followed;
    return old.index_select(1, next.order).t().mm(basis_).square().t().mm(followed);
  }
  bool prepared() const { return next_.has_value(); }

 private:
  struct Next {
    at::Tensor basis, order, eigenvalues;
  };
  static at::Tensor zeros(int64_t rows, int64_t columns) { return at::zeros({rows, columns}, at::kDouble); }

  int64_t size_, directions_;
  bool first_;
  at::Tensor covariance_, y0_, basis_, eigenvalues_;
  std::optional<Next> next_;
};

class Reference {
 public:
  Reference(const OptimizerConfig& config, const at::Tensor& weight)
      : config_(config), settings_(rotation(config)), weight_(weight.to(at::kDouble)) {
    const int64_t rows = weight.size(0), columns = weight.size(1);
    const bool both = settings_.geometry == "bilateral";
    add(0, rows, both || rows <= columns ? directions(rows, columns) : 0);
    add(1, columns, both || rows > columns ? directions(columns, rows) : 0);
    m_ = turned(at::zeros({rows, columns}, at::kDouble));
    v_ = m_.clone();
    ahead_ = at::zeros({rows, columns}, at::kDouble);
  }

  const at::Tensor& weight() const { return weight_; }
  const std::vector<int64_t>& refreshes() const { return refreshes_; }

  void step(const at::Tensor& given, const UpdateContext& context) {
    const at::Tensor g = given.to(at::kDouble);
    const auto t = static_cast<double>(context.update);
    weight_ = weight_ - ahead_;
    const bool averages = settings_.source == "second" && context.update % settings_.covariance_every == 0;
    const double bc = settings_.covariance_beta > 0 ? settings_.covariance_beta : config_.beta2;
    const double beta = std::pow(bc, static_cast<double>(settings_.covariance_every));
    std::vector<Placed*> late;
    for (Placed& p : sides_) {
      if (p.side.averages_late()) late.push_back(&p);
      if (averages && !p.side.averages_late()) p.side.average(p.as_rows(g), beta);
    }
    refresh_if_due(g, bc, context);
    for (Placed* p : late) {
      if (averages) p->side.average(p->as_rows(g), beta);
    }
    const at::Tensor gt = turned(g);
    m_ = config_.beta1 * m_ + (1 - config_.beta1) * gt;
    v_ = config_.beta2 * v_ + (1 - config_.beta2) * gt.square();
    const at::Tensor dt =
        m_ / (1 - std::pow(config_.beta1, t)) / ((v_ / (1 - std::pow(config_.beta2, t))).sqrt() + config_.epsilon);
    const double rate = context.learning_rate;
    weight_ = (1 - rate * config_.weight_decay) * weight_ - rate * turned_back(dt);
    if (settings_.look_ahead > 0 && ready()) {
      for (Placed& p : sides_) p.as_rows(dt).narrow(0, 0, p.side.steep(settings_.look_ahead)).zero_();
      ahead_ = -static_cast<double>(context.delay) * rate * turned_back(dt);
    }
    weight_ = weight_ + ahead_;
  }

 private:
  struct Placed {
    int64_t which;  // 0: left, 1: right
    Side side;
    at::Tensor as_rows(const at::Tensor& x) const { return which == 0 ? x : x.t(); }
  };

  void add(int64_t which, int64_t size, int64_t directions) {
    if (directions > 0) sides_.push_back({which, Side(size, directions, settings_.source == "first")});
  }
  int64_t directions(int64_t size, int64_t other) const {
    const int64_t held = size >= 2 * other && settings_.long_sides == "thin" ? other : size;
    const bool limited = settings_.max_dimension > 0 && size > settings_.max_dimension;
    return limited ? std::min(held, settings_.sketch) : held;
  }
  bool ready() const {
    return std::all_of(sides_.begin(), sides_.end(), [](const Placed& p) { return p.side.ready(); });
  }
  at::Tensor turned(at::Tensor x) const {
    for (const Placed& p : sides_) x = p.which == 0 ? p.side.turn().mm(x) : x.mm(p.side.turn().t());
    return x;
  }
  at::Tensor turned_back(at::Tensor x) const {
    for (const Placed& p : sides_) x = p.which == 0 ? p.side.turn().t().mm(x) : x.mm(p.side.turn());
    return x;
  }

  void refresh_if_due(const at::Tensor& g, double bc, const UpdateContext& context) {
    int64_t interval = settings_.interval;
    const double mean = context.mean_delay.all_stages;
    if (settings_.refresh == "stage-aware" && ready()) {
      const double own = std::max(context.mean_delay.stage, std::min(1.0, mean) / 2);
      interval = std::max<int64_t>(1, std::llround(static_cast<double>(interval) * mean / own));
    }
    const int64_t lag = std::min(settings_.refresh_lag, interval - 1);
    if (sides_[0].side.prepared() && context.update % interval == lag) take();
    if (context.update % interval != 0) return;
    const at::Tensor momentum = config_.beta1 * turned_back(m_) + (1 - config_.beta1) * g;
    const auto covariance = [&](const Placed& p) {
      return settings_.source == "first" ? p.side.image(p.as_rows(momentum)) : p.side.covariance();
    };
    if (settings_.refresh == "adaptive" && ready()) {
      double drift = 0;
      for (const Placed& p : sides_) drift = std::max(drift, p.side.drift(covariance(p)));
      if (drift <= settings_.drift) return;
    }
    refreshes_.push_back(context.update);
    const double b = std::min(std::pow(bc, static_cast<double>(interval)),
                              1 - static_cast<double>(interval) / static_cast<double>(context.update));
    for (Placed& p : sides_) p.side.prepare(covariance(p), b);
    if (lag == 0) take();
  }
  void take() {
    const at::Tensor own = turned_back(m_);
    for (Placed& p : sides_) v_ = p.as_rows(p.side.take(p.as_rows(v_), settings_.transport));
    m_ = turned(own);
  }

  OptimizerConfig config_;
  BasisRotationSettings settings_;
  at::Tensor weight_, m_, v_, ahead_;
  std::vector<Placed> sides_;
  std::vector<int64_t> refreshes_;
};

// Gradients whose covariances have eigenvalues that lie apart on both sides, so that their eigenvectors are well
// defined in fp32 too.
at::Tensor some_gradient(const at::Tensor& left, const at::Tensor& right) {
  const int64_t rows = left.size(0), columns = right.size(0);
  const at::Tensor scales =
      at::logspace(0, -1, rows, 10, at::kFloat).unsqueeze(1) * at::logspace(0, -1, columns, 10, at::kFloat);
  return left.mm(scales * at::randn({rows, columns})).mm(right.t());
}

// How far the optimizer ends from the formulas, as a share of how far the weights have moved.
double distance(const OptimizerConfig& config, int64_t rows, int64_t columns) {
  constexpr int64_t kUpdates = 43;
  at::manual_seed(1);
  const at::Tensor left = random_orthogonal(rows), right = random_orthogonal(columns),
                   start = at::randn({rows, columns});
  const at::Tensor w = start.clone();
  auto optimizer = make_optimizer(config, {matrix("w", rows, columns, true)});
  Reference reference(config, start);
  for (int64_t t = 1; t <= kUpdates; ++t) {
    const at::Tensor g = some_gradient(left, right);
    UpdateContext context = context_of(t, 1e-2 * static_cast<double>(t), std::min<int64_t>(t - 1, 3));
    context.mean_delay = {1, 3};
    step(*optimizer, w, g, context);
    reference.step(g, context);
  }
  const at::Tensor found = w.to(at::kDouble);
  EXPECT_GE(reference.refreshes().size(), 3u);
  return ((found - reference.weight()).norm() / (found - start).norm()).item<double>();
}

TEST(RotationFormula, OfEveryWayToRotate) {
  using Change = void (*)(BasisRotationSettings&);
  const std::map<std::string, Change> changes = {
      {"as it is", [](auto&) {}},
      {"unilateral", [](auto& s) { s.geometry = "unilateral"; }},
      {"whole", [](auto& s) { s.long_sides = "whole"; }},
      {"first", [](auto& s) { s.source = "first"; }},
      {"transport", [](auto& s) { s.transport = true; }},
      {"lag", [](auto& s) { s.refresh_lag = 3; }},
      {"memory", [](auto& s) { s.covariance_beta = 0.9, s.covariance_every = 3; }},
      {"stage-aware", [](auto& s) { s.refresh = "stage-aware"; }},
      {"adaptive", [](auto& s) { s.refresh = "adaptive", s.drift = 0.25; }},
      {"sketch", [](auto& s) { s.max_dimension = 7, s.sketch = 3; }},
      {"ahead", [](auto& s) { s.look_ahead = 0.6; }},
      {"all at once", [](auto& s) {
         s.source = "first", s.refresh = "stage-aware", s.refresh_lag = 2, s.look_ahead = 0.6, s.transport = true;
       }}};
  for (const auto& [name, change] : changes) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{8, 8}, {6, 9}, {16, 5}, {4, 12}}) {
      OptimizerConfig config = config_of("basis-rotation");
      config.beta2 = 0.99;
      config.weight_decay = 0.1;
      rotation(config).interval = 6;
      change(rotation(config));
      // Of one momentum's six directions, the longer side's other three could be any.
      if (rotation(config).source == "first" && rows == 6) continue;
      EXPECT_LT(distance(config, rows, columns), 1e-4) << name << ", " << rows << " x " << columns;
    }
  }
}

}  // namespace
}  // namespace gyre
