#include "gyre/runtime/weight_store.h"

#include <cmath>
#include <utility>

#include "gyre/tensors/device.h"

namespace gyre {
namespace {

bool has_forecast(WeightPolicy weights) {
  return weights == WeightPolicy::Predict || weights == WeightPolicy::Corrected;
}

// Whether masters are tensors of their own, neither the newest version nor the other half of it.
bool has_separate_masters(at::ScalarType compute, bool forecast, at::Device device) {
  return forecast || (compute == at::kBFloat16 && has_streams(device));
}

}  // namespace

Message to_message(const WeightVersion& version, int64_t number) {
  Message message{number, {version.buffer.flat}, {static_cast<double>(version.number)}, version.lease};
  if (version.corrected.flat.defined()) message.tensors.push_back(version.corrected.flat);
  return message;
}

WeightReader to_version(Message message, std::span<const ParameterSpec> specs) {
  const auto version = std::make_shared<WeightVersion>();
  version->number = static_cast<int64_t>(message.values[0]);
  version->buffer = view_flat_buffer(message.tensors[0], specs);
  if (message.tensors.size() > 1) version->corrected = view_flat_buffer(message.tensors[1], specs);
  version->lease = std::move(message.lease);
  return version;
}

WeightReader joined(std::vector<WeightReader> shards) {
  if (shards.size() == 1) return shards.front();
  const auto version = std::make_shared<WeightVersion>();
  version->number = shards.front()->number;
  const auto append = [](const FlatBuffer& shard, FlatBuffer& all) {
    all.tensors.insert(all.tensors.end(), shard.tensors.begin(), shard.tensors.end());
  };
  for (const WeightReader& shard : shards) {
    append(shard->buffer, version->buffer);
    append(shard->corrected, version->corrected);
  }
  version->lease = std::make_shared<std::vector<WeightReader>>(std::move(shards));
  return version;
}

int64_t master_bytes(at::ScalarType compute, at::Device device) {
  if (has_separate_masters(compute, /*forecast=*/false, device)) return 4;
  return compute == at::kBFloat16 ? 2 : 0;
}

int64_t forecast_bytes(at::ScalarType compute, WeightPolicy weights, at::Device device) {
  if (!has_forecast(weights)) return 0;
  constexpr int64_t kSeparateMaster = 4, kPreviousAndStep = 8;
  const auto corrected = weights == WeightPolicy::Corrected ? static_cast<int64_t>(at::elementSize(compute)) : 0;
  return kSeparateMaster - master_bytes(compute, device) + kPreviousAndStep + corrected;
}

WeightStore::WeightStore(std::vector<ParameterSpec> specs, at::ScalarType compute, at::Device device,
                         const ForecastOptions& forecast)
    : specs_(std::move(specs)),
      forecast_(forecast),
      kind_(has_separate_masters(compute, forecast_.any(), device) ? Masters::Separate
            : compute == at::kBFloat16                             ? Masters::Split
                                                                   : Masters::InPlace),
      pool_(specs_, compute, device),
      corrected_pool_(specs_, compute, device) {
  if (kind_ == Masters::Separate) {
    masters_ = make_flat_buffer(specs_, at::kFloat, device);
    publish();
  } else {
    newest_ = pool_.take();
    if (kind_ == Masters::Split) rests_ = make_flat_buffer(specs_, at::kShort, device);
  }
}

at::Tensor WeightStore::master(size_t i) const {
  switch (kind_) {
    case Masters::InPlace:
      return newest_->tensors[i];
    case Masters::Split:
      return joined(halves(i, *newest_));
    case Masters::Separate:
      break;
  }
  return masters_.tensors[i];
}

std::vector<at::Tensor> WeightStore::masters() const {
  std::vector<at::Tensor> masters;
  for (size_t i = 0; i < specs_.size(); ++i) masters.push_back(master(i));
  return masters;
}

std::shared_ptr<WeightVersion> WeightStore::lent(const PooledBuffer& buffer) const {
  auto version = std::make_shared<WeightVersion>();
  version->number = version_;
  version->buffer = view_flat_buffer(buffer->flat, specs_);
  version->lease = buffer.lend();
  return version;
}

WeightReader WeightStore::read() const {
  const std::shared_ptr<WeightVersion> version = lent(newest_);
  if (corrected_) {
    version->corrected = view_flat_buffer(corrected_->flat, specs_);
    version->lease = std::make_shared<std::pair<Lease, Lease>>(version->lease, corrected_.lend());
  }
  return version;
}

WeightReader WeightStore::read_with(const at::Tensor& values) {
  const PooledBuffer buffer = pool_.take();
  buffer->flat.copy_(values);
  return lent(buffer);
}

// If a reader holds a version that is the master, the update goes to a copy and the reader keeps the old buffer.
std::span<const at::Tensor> WeightStore::own_masters() {
  if (kind_ == Masters::Separate) return masters_.tensors;
  if (newest_.is_lent()) {
    PooledBuffer next = pool_.take();
    next->flat.copy_(newest_->flat);
    newest_ = std::move(next);
  }
  return newest_->tensors;
}

// The previous version's buffer is free unless a reader holds it.
void WeightStore::publish() {
  newest_ = {};
  newest_ = pool_.take();
  if (forecast_.forward()) {
    forecast_.write(masters_.flat, newest_->flat);
  } else {
    newest_->flat.copy_(masters_.flat);
  }
  if (!forecast_.backward()) return;
  corrected_ = {};
  corrected_ = corrected_pool_.take();
  forecast_.write(masters_.flat, corrected_->flat);
}

SplitWeight WeightStore::halves(size_t i, const FlatBuffer& next) const {
  return {newest_->tensors[i], rests_.tensors[i], next.tensors[i]};
}

void WeightStore::update(Optimizer& optimizer, std::span<const at::Tensor> gradients, double norm,
                         const UpdateContext& context) {
  if (!std::isfinite(norm)) {
    optimizer.skip(masters(), context);
  } else if (kind_ == Masters::Split) {
    update_halves(optimizer, gradients, context);
  } else {
    optimizer.step(own_masters(), gradients, context);
  }
  if (forecast_.any()) forecast_.observe(masters_.flat);
  ++version_;
  if (kind_ == Masters::Separate) publish();
}

// In place, unless a reader holds the newest version.
void WeightStore::update_halves(Optimizer& optimizer, std::span<const at::Tensor> gradients,
                                const UpdateContext& context) {
  PooledBuffer elsewhere;
  if (newest_.is_lent()) elsewhere = pool_.take();
  const FlatBuffer& next = elsewhere ? *elsewhere : *newest_;
  std::vector<SplitWeight> weights;
  for (size_t i = 0; i < specs_.size(); ++i) weights.push_back(halves(i, next));
  optimizer.step_split(weights, gradients, context);
  if (elsewhere) newest_ = std::move(elsewhere);
}

void WeightStore::restart(int64_t version, const std::function<at::Tensor(size_t)>& weights) {
  if (kind_ == Masters::Split) {
    if (newest_.is_lent()) newest_ = pool_.take();
    for (size_t i = 0; i < specs_.size(); ++i) split(weights(i), halves(i, *newest_));
  } else {
    const auto masters = own_masters();
    for (size_t i = 0; i < specs_.size(); ++i) masters[i].copy_(weights(i));
  }
  restart(version);
}

void WeightStore::restart(int64_t version) {
  forecast_.restart();
  version_ = version;
  if (kind_ == Masters::Separate) publish();
}

void WeightStore::begin_segment() {
  if (!forecast_.any()) return;
  restart(version_);
  forecast_.observe(masters_.flat);
}

}  // namespace gyre
