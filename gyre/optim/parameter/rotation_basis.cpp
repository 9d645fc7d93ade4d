#include "gyre/optim/parameter/rotation_basis.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "gyre/core/random.h"
#include "gyre/kernels/matrix_product.h"
#include "gyre/optim/parameter/mixed_kernels.h"
#include "gyre/optim/parameter/orthonormal.h"
#include "gyre/optim/parameter/stacks.h"
#include "gyre/optim/parameter/state.h"

namespace gyre {
namespace {

constexpr const char* kVectors = "_basis";  // their name in the state, behind the prefix

constexpr int kColdSteps = 4;  // of iteration where the first basis is no decomposition

at::Tensor random_orthonormal(int64_t rows, int64_t columns, at::Device device) {
  at::Tensor values = at::empty({rows, columns}, at::kFloat);
  RandomStream stream(0, StreamPurpose::Sketch, static_cast<uint64_t>(rows));
  stream.fill_normal({values.data_ptr<float>(), static_cast<size_t>(values.numel())}, 1);
  return by_reflections(values).q.to(device);
}

// The probe of sketches with `columns` of `rows` directions. It depends on nothing else, so all that need one at a
// time, in any thread, share it.
std::shared_ptr<const SketchProbe> shared_probe(int64_t rows, int64_t columns, at::Device device) {
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, int64_t, std::string>, std::weak_ptr<const SketchProbe>> probes;
  const std::lock_guard lock(mutex);
  auto& shared = probes[{rows, columns, device.str()}];
  auto probe = shared.lock();
  if (!probe) {
    at::Tensor vectors = random_orthonormal(rows, columns, device);
    probe = std::make_shared<SketchProbe>(SketchProbe{std::move(vectors), DeviceEvent::record(device)});
    shared = probe;
  }
  return probe;
}

// The trace of each square matrix, and the norm of each: 0-dim, or (matrices). Not every device has a trace of its own.
at::Tensor diagonal_sum(const at::Tensor& matrix) {
  return matrix.is_cpu() && !is_stack(matrix) ? matrix.trace() : matrix.diagonal(0, -2, -1).sum(-1);
}
at::Tensor norm_of(const at::Tensor& matrix) {
  const auto norm = [&](double order) { return at::linalg_vector_norm(matrix, order, at::IntArrayRef{-2, -1}); };
  const at::Tensor exact = is_stack(matrix) ? norm(2) : matrix.norm();
  // Above 1e19 squares are infinite in fp32, and a bound of the norm is as good a scale.
  const double bound = 2 * std::sqrt(static_cast<double>(matrix.size(-2) * matrix.size(-1)));
  return at::fmin(exact, norm(std::numeric_limits<double>::infinity()) * bound);
}

// Slices of x along `side`, in the order given: (columns) int64. gather, because index_select is not on every device.
at::Tensor reordered(const at::Tensor& x, int64_t side, const at::Tensor& order) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[sizes.size() - 2 + static_cast<size_t>(side)] = order.size(-1);
  return x.gather(dimension_of(side), order.unsqueeze(side == 0 ? -1 : -2).expand(sizes));
}
at::Tensor reordered(const at::Tensor& values, const at::Tensor& order) {
  return values.gather(-1, order);
}

// a x for side 0, x a^T for side 1.
at::Tensor applied(const at::Tensor& a, const at::Tensor& x, int64_t side, bool bf16) {
  return side == 0 ? product(a, x, bf16) : product(x, a.mT(), bf16);
}

// The same for a transpose, a^T x or x a.
at::Tensor applied_transpose(const at::Tensor& a, const at::Tensor& x, int64_t side, bool bf16) {
  return side == 0 ? product_in_either(a.mT(), x, bf16) : product(x, a, bf16);
}

}  // namespace

RotationBasis::RotationBasis(int64_t size, const RotationBasisOptions& options, at::Device device, int64_t matrices)
    : options_(options) {
  load_linear_algebra(device);
  const int64_t columns = is_sketch() ? options.rank : size;
  const auto zeros = [&](std::vector<int64_t> sizes) {
    if (matrices > 1) sizes.insert(sizes.begin(), matrices);
    return at::zeros(sizes, at::TensorOptions().dtype(at::kFloat).device(device));
  };
  vectors_ = zeros({size, columns});
  if (options.keeps_covariance) {
    covariance_ = at::zeros_like(vectors_);
  } else {
    eigenvalues_ = zeros({columns});
  }
}

int64_t RotationBasis::coordinates(int64_t size, const RotationBasisOptions& options) {
  return size + options.rank;
}

double RotationBasis::state_bytes(int64_t size, const RotationBasisOptions& options) {
  constexpr double kFloat = 4;
  const auto columns = static_cast<double>(options.rank > 0 ? options.rank : size);
  const double basis = static_cast<double>(size) * columns * kFloat;
  return basis + (options.keeps_covariance ? basis : columns * kFloat);
}

RotationCost RotationBasis::cost(int64_t size, const RotationBasisOptions& options, int64_t other) {
  const bool sketch = options.rank > 0;
  const auto n = static_cast<double>(size), k = static_cast<double>(other);
  const double r = sketch ? static_cast<double>(options.rank) : n;
  const double qr = 2 * (n * r * r - r * r * r / 3);  // the decomposition, and Q made of it
  // A sketch is multiplied twice where the whole is once; its image is at hand. Of a square half is made.
  return {(sketch ? 2 : 1) * n * r * k, (sketch ? 1 : 0.5) * n * r * k, qr + (sketch ? 0 : n * n * r)};
}

void RotationBasis::set_vectors(const at::Tensor& vectors) {
  vectors_.copy_(vectors);
  if (options_.bf16.rotation && directions() >= kBf16From) bf16_vectors_ = to_bf16(vectors_);
}

// The basis in the type of a product with a matrix whose other side is `other`.
const at::Tensor& RotationBasis::operand(int64_t other) const {
  return bf16_vectors_.defined() && other >= kBf16From ? bf16_vectors_ : vectors_;
}

at::Tensor RotationBasis::rotate(const at::Tensor& x, int64_t side) const {
  at::Tensor held;
  return rotate(x, side, held);
}

at::Tensor RotationBasis::rotate_and_accumulate(const at::Tensor& x, int64_t side, double beta) {
  at::Tensor held;
  const at::Tensor result = rotate(x, side, held);
  const bool bf16 = options_.bf16.covariance;
  average_into(covariance_, side == 0 ? product_in_fp32(x, held.mT(), bf16) : product_in_fp32(x.mT(), held, bf16),
               beta);
  return result;
}

at::Tensor RotationBasis::rotate(const at::Tensor& x, int64_t side, at::Tensor& held) const {
  const at::Tensor& vectors = operand(x.size(dimension_of(1 - side)));
  if (!is_sketch()) return ready_ ? applied_transpose(vectors, x, side, options_.bf16.rotation) : x;
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[sizes.size() - 2 + static_cast<size_t>(side)] = coordinates();
  at::Tensor result = at::empty(sizes, x.options().dtype(at::kFloat));
  const at::Tensor first = result.narrow(dimension_of(side), 0, options_.rank);
  if (!ready_) {
    first.zero_();
    rest(result, side).copy_(x);
    return result;
  }
  held = applied_transpose(vectors, x, side, options_.bf16.rotation);
  first.copy_(held);
  set_difference(rest(result, side), x, applied(vectors, held, side, options_.bf16.rotation));
  return result;
}

at::Tensor RotationBasis::rest(const at::Tensor& y, int64_t side) const {
  const int64_t dimension = dimension_of(side);
  return is_sketch() ? y.narrow(dimension, options_.rank, y.size(dimension) - options_.rank) : y;
}

at::Tensor RotationBasis::rotate_back(const at::Tensor& y, int64_t side) const {
  const at::Tensor& vectors = operand(y.size(dimension_of(1 - side)));
  if (!is_sketch()) return ready_ ? applied(vectors, y, side, options_.bf16.rotation) : y;
  const at::Tensor others = rest(y, side);
  if (!ready_) return others.to(at::kFloat);
  // Rounded once, for both products that take it.
  const at::Tensor outside = vectors.scalar_type() == at::kBFloat16 ? to_bf16(others) : others;
  const at::Tensor first = y.narrow(dimension_of(side), 0, options_.rank);
  const at::Tensor held = at::empty(first.sizes(), y.options().dtype(at::kFloat));
  set_difference(held, first, applied_transpose(vectors, outside, side, options_.bf16.rotation));
  return applied(vectors, held, side, options_.bf16.rotation).add_(outside);
}

at::Tensor RotationBasis::image(const at::Tensor& x, int64_t side) const {
  const at::Tensor across = side == 0 ? x : x.mT();  // (size, k)
  if (!is_sketch()) return product_in_fp32(across, across.mT(), options_.bf16.covariance);
  const at::Tensor& held = options_.bf16.covariance ? operand(across.size(-1)) : vectors_;
  const at::Tensor y = ready_ ? held : probe();
  return product_in_fp32(across, product(across.mT(), y, options_.bf16.covariance), options_.bf16.covariance);
}

at::Tensor RotationBasis::probe() const {
  if (!probe_) probe_ = shared_probe(size(), directions(), vectors_.device());
  const at::Tensor shared = on_device(probe_->vectors, vectors_.device(), probe_->made);
  return is_stack(vectors_) ? shared.expand_as(vectors_) : shared;
}

void RotationBasis::accumulate(const at::Tensor& x, int64_t side, double beta) {
  if (is_sketch()) return average_into(covariance_, image(x, side), beta);
  average_square_into(covariance_, side == 0 ? x : x.mT(), beta, options_.bf16.covariance);
}

const at::Tensor& RotationBasis::covariance() const {
  if (covariance_.defined() && !is_sketch()) complete(covariance_);
  return covariance_;
}

RotationBasis::Prepared RotationBasis::iterated(const at::Tensor& moved, const at::Tensor& vectors,
                                                const at::Tensor& size) {
  const at::Tensor rayleigh = (vectors * moved).sum(-2);
  const at::Tensor order = std::get<1>(at::sort(rayleigh, /*stable=*/true, /*dim=*/-1, /*descending=*/true));
  // Columns that C sends to nothing keep their direction: a trace of the old basis is added, far below what C holds.
  const at::Tensor share = size.to(at::kDouble) * 1e-7 + 1e-30;
  const auto [q, scales] =
      orthonormalised(reordered(moved, 1, order), reordered(vectors, 1, order) * for_each_matrix(share, vectors));
  return {order, q, scales};
}

RotationBasis::Prepared RotationBasis::next_basis(const NextBasis& from) {
  const at::Tensor& covariance = from.covariance;
  // Scaled to a size of about one: gradients may be tiny, and eigenvectors do not depend on scale.
  const at::Tensor size = from.sketch ? norm_of(covariance) : diagonal_sum(covariance);
  if (from.ready) {
    at::Tensor moved = from.sketch ? covariance : product(covariance, from.vectors, from.bf16).to(at::kFloat);
    if (from.eigenvalues.defined()) {
      moved = moved * (1 - from.beta) + from.vectors * (from.eigenvalues * from.beta).unsqueeze(-2);
    }
    return iterated(moved, from.vectors, size);
  }
  // A zero matrix stays one, and gives the standard basis.
  const at::Tensor divisor = size.clamp_min(std::numeric_limits<float>::min());
  const at::Tensor scaled = covariance / for_each_matrix(divisor, covariance);
  const auto unscaled = [&](const at::Tensor& values) { return values * for_each_matrix(size, values); };
  if (from.sketch) {
    const auto [q, scales] = orthonormalised(scaled, from.probe * 1e-7);
    return {{}, q, unscaled(scales)};
  }
  const int64_t rows = covariance.size(-1);
  if (rows <= from.largest_decomposition) {
    settle_number_of_threads();
    const auto [values, vectors] = at::linalg_eigh(scaled);
    const at::Tensor falling =
        at::arange(rows - 1, -1, -1, covariance.options().dtype(at::kLong)).expand(values.sizes());
    return {{}, reordered(vectors, 1, falling), unscaled(reordered(values, falling))};
  }
  Prepared step{{}, at::eye(rows, covariance.options()).expand_as(covariance), {}};
  for (int i = 0; i < kColdSteps; ++i) {
    step = iterated(product(scaled, step.vectors, from.bf16).to(at::kFloat), step.vectors, at::ones_like(size));
  }
  return {{}, step.vectors, unscaled(step.eigenvalues)};
}

RotationBasis::Prepared RotationBasis::wanted_basis(const NextBasis& from) {
  Prepared next = next_basis(from);
  if (!from.wanted.defined()) return next;
  // Products with 0 or 1 choose between finite values, on every device.
  const auto chosen = [&](const at::Tensor& found, const at::Tensor& old) {
    const at::Tensor wanted = for_each_matrix(from.wanted.to(found.scalar_type()), found);
    return found * wanted + old * (1 - wanted);
  };
  next.order = chosen(next.order, at::arange(next.order.size(-1), next.order.options()));
  next.vectors = chosen(next.vectors, from.vectors);
  if (from.eigenvalues.defined()) next.eigenvalues = chosen(next.eigenvalues, from.eigenvalues);
  return next;
}

void RotationBasis::prepare(const at::Tensor& covariance, double beta, SideThread* beside, const at::Tensor& wanted) {
  NextBasis from{covariance,
                 vectors_,
                 eigenvalues_,
                 is_sketch() && !ready_ ? probe() : at::Tensor(),
                 ready_ ? wanted : at::Tensor(),
                 beta,
                 options_.bf16.iteration,
                 is_sketch(),
                 ready_,
                 options_.largest_decomposition};
  if (beside == nullptr) {
    std::promise<Prepared> now;
    now.set_value(wanted_basis(from));
    next_ = now.get_future().share();
    return;
  }
  // From copies: averaging goes on meanwhile.
  from.covariance = covariance.clone();
  from.vectors = vectors_.clone();
  if (eigenvalues_.defined()) from.eigenvalues = eigenvalues_.clone();
  if (has_streams(vectors_.device())) {
    next_ = made_beside(std::move(from));
  } else {
    next_ = beside->run([from] { return wanted_basis(from); }).share();
  }
}

// A device works on by itself, so this needs no thread, only a stream: always the same one, since cuBLAS keeps memory
// for each that it is used on. But for the first basis: an eigendecomposition waits until it is done.
std::shared_future<RotationBasis::Prepared> RotationBasis::made_beside(NextBasis from) {
  const at::Device device = vectors_.device();
  if (!beside_) beside_ = make_side_stream(device);
  const DeviceEvent copied = DeviceEvent::record(device);
  const StreamScope scope(beside_);
  for (at::Tensor* of : {&from.covariance, &from.vectors, &from.eigenvalues, &from.probe, &from.wanted}) {
    *of = on_device(*of, device, copied);
  }
  std::promise<Prepared> next;
  Prepared prepared = wanted_basis(from);
  prepared.made = DeviceEvent::record(device);
  next.set_value(std::move(prepared));
  return next.get_future().share();
}

RotationBasis::Prepared RotationBasis::prepared() const {
  Prepared next = next_.get();
  for (at::Tensor* of : {&next.order, &next.vectors, &next.eigenvalues}) {
    *of = on_device(*of, vectors_.device(), next.made);
  }
  return next;
}

RotationBasis::Change RotationBasis::take(bool keep_old_vectors) {
  const Prepared next = prepared();
  next_ = {};
  Change change{!next.order.defined(), next.order, keep_old_vectors ? vectors_.clone() : at::Tensor()};
  if (is_sketch() && options_.keeps_covariance) {
    // C new = C old (old^T new), as far as the old sketch knows C.
    const at::Tensor old = ready_ ? vectors_ : probe();
    // In columns, as decompositions lay them out: of a basis that was loaded, which lies in rows, some libraries'
    // products have other last bits.
    const at::Tensor columns = at::empty_like(next.vectors.mT(), at::MemoryFormat::Contiguous).mT();
    columns.copy_(next.vectors);
    const at::Tensor from_old = product_in_fp32(old.mT(), columns, options_.bf16.covariance);
    covariance_.copy_(product_in_fp32(covariance_, from_old, options_.bf16.covariance));
  }
  set_vectors(next.vectors);
  if (eigenvalues_.defined()) eigenvalues_.copy_(next.eigenvalues);
  ready_ = true;
  probe_.reset();
  return change;
}

at::Tensor RotationBasis::carry_variances(const at::Tensor& v, int64_t side, const Change& change) const {
  const auto mixed = [&](const at::Tensor& a, const at::Tensor& x) { return applied(a.square().mT(), x, side, false); };
  if (is_sketch()) {
    const at::Tensor others = rest(v, side);
    const int64_t dimension = dimension_of(side);
    if (!change.cold) {
      return at::cat({reordered(v.narrow(dimension, 0, options_.rank), side, change.order), others}, dimension);
    }
    const at::Tensor outside = (1 - vectors_.square().sum(-1)).clamp_min(0);
    return at::cat({mixed(vectors_, others), others * outside.unsqueeze(side == 0 ? -1 : -2)}, dimension);
  }
  if (change.cold) return mixed(vectors_, v);
  const at::Tensor followed = reordered(v, side, change.order);
  if (!change.old_vectors.defined()) return followed;
  return mixed(matrix_product(reordered(change.old_vectors, 1, change.order).mT(), vectors_), followed);
}

at::Tensor RotationBasis::drift(const at::Tensor& covariance) const {
  const at::Tensor moved = is_sketch() ? covariance : product(covariance, vectors_, options_.bf16.iteration);
  const at::Tensor rotated = product(vectors_.mT(), moved, options_.bf16.iteration).to(at::kFloat);
  // In fp64: covariances are squares already, and those of tiny gradients have no squares in fp32.
  const auto norm = [](const at::Tensor& x, at::IntArrayRef dimensions) {
    return at::linalg_vector_norm(x, 2, dimensions, /*keepdim=*/false, at::kDouble);
  };
  const at::Tensor diagonal = norm(rotated.diagonal(0, -2, -1), {-1}) / norm(rotated, {-2, -1});
  // Where nothing is there, 0 / 0, nothing has drifted: fmax passes over what is no number.
  return at::fmax(1 - diagonal.square(), at::zeros_like(diagonal)).sqrt();
}

at::Tensor RotationBasis::saved_vectors(const std::string& prefix, const NamedTensors& state) {
  const auto found = state.find(prefix + kVectors);
  const bool ready = found != state.end() && found->second.any().item<bool>();  // zeros: there was none yet
  return ready ? found->second : at::Tensor();
}

void RotationBasis::save(const std::vector<std::string>& prefixes, NamedTensors& state) const {
  const Prepared next = next_.valid() ? prepared() : Prepared{};
  const at::Tensor next_order = next.order.defined() ? next.order.to(at::kFloat) : at::Tensor();
  const at::Tensor& kept = covariance();
  for (size_t i = 0; i < prefixes.size(); ++i) {
    const auto keep = [&](const char* name, const at::Tensor& x) {
      if (x.defined()) state[prefixes[i] + name] = at_place(x, static_cast<int64_t>(i), is_stack(vectors_));
    };
    keep(kVectors, vectors_);
    keep("_covariance", kept);
    keep("_eigenvalues", eigenvalues_);
    keep("_next_basis", next.vectors);
    keep("_next_eigenvalues", next.eigenvalues);
    keep("_next_order", next_order);
  }
}

void RotationBasis::load(const std::vector<std::string>& prefixes, const NamedTensors& state) {
  const auto any = [&](const auto& is) { return std::any_of(prefixes.begin(), prefixes.end(), is); };
  const auto is_ready = [&](const std::string& prefix) { return saved_vectors(prefix, state).defined(); };
  const auto has_next = [&](const std::string& prefix) { return state.count(prefix + "_next_basis") > 0; };
  ready_ = any(is_ready);
  if (ready_) probe_.reset();
  next_ = {};
  Prepared next;
  if (any(has_next)) {
    next.vectors = at::empty_like(vectors_);
    next.eigenvalues = at::empty_like(vectors_.select(-2, 0), at::MemoryFormat::Contiguous);
    if (ready_) next.order = at::empty_like(next.eigenvalues);
  }
  for (size_t i = 0; i < prefixes.size(); ++i) {
    const std::string& prefix = prefixes[i];
    const auto place = [&](const at::Tensor& x) { return at_place(x, static_cast<int64_t>(i), is_stack(vectors_)); };
    const at::Tensor vectors = place(vectors_);
    load_tensor(state, prefix + kVectors, vectors);
    if (options_.keeps_covariance) load_tensor(state, prefix + "_covariance", place(covariance_));
    if (eigenvalues_.defined()) load_tensor(state, prefix + "_eigenvalues", place(eigenvalues_));
    // What the others of a stack have and this matrix has not is what changes nothing.
    if (ready_ && !is_ready(prefix) && !is_sketch()) vectors.copy_(at::eye(size(), vectors.options()));
    if (has_next(prefix)) {
      load_tensor(state, prefix + "_next_basis", place(next.vectors));
      load_tensor(state, prefix + "_next_eigenvalues", place(next.eigenvalues));
      if (ready_) load_tensor(state, prefix + "_next_order", place(next.order));
    } else if (next.vectors.defined()) {
      place(next.vectors).copy_(vectors);
      place(next.eigenvalues)
          .copy_(eigenvalues_.defined() ? place(eigenvalues_) : at::zeros_like(vectors.select(0, 0)));
      if (ready_) place(next.order).copy_(at::arange(directions(), vectors.options()));
    }
  }
  set_vectors(vectors_.clone());
  if (!next.vectors.defined()) return;
  if (ready_) next.order = next.order.to(at::kLong);
  std::promise<Prepared> now;
  now.set_value(std::move(next));
  next_ = now.get_future().share();
}

}  // namespace gyre
