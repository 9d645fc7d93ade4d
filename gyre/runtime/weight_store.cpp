#include "gyre/runtime/weight_store.h"

#include <utility>

namespace gyre {

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

WeightStore::WeightStore(std::vector<ParameterSpec> specs, at::ScalarType compute, at::Device device,
                         const ForecastOptions& forecast)
    : specs_(std::move(specs)),
      compute_(compute),
      forecast_(forecast),
      pool_(specs_, compute, device),
      corrected_pool_(specs_, compute, device) {
  if (in_place()) {
    newest_ = pool_.take();
  } else {
    separate_masters_ = make_flat_buffer(specs_, at::kFloat, device);
    publish();
  }
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

// The outgoing version's buffer is free unless a reader holds it.
void WeightStore::take_next() {
  newest_ = {};
  newest_ = pool_.take();
}

void WeightStore::publish() {
  if (in_place()) return;
  take_next();
  if (forecast_.forward()) {
    forecast_.write(separate_masters_.flat, newest_->flat);
  } else {
    newest_->flat.copy_(separate_masters_.flat);
  }
  if (!forecast_.backward()) return;
  corrected_ = {};
  corrected_ = corrected_pool_.take();
  forecast_.write(separate_masters_.flat, corrected_->flat);
}

std::span<const at::Tensor> WeightStore::begin_update() {
  // fp32: the newest version is the master. If anyone reads it, the update goes to a copy and they keep the old buffer.
  if (in_place() && newest_.is_lent()) {
    PooledBuffer next = pool_.take();
    next->flat.copy_(newest_->flat);
    newest_ = std::move(next);
  }
  return masters();
}

std::span<const at::Tensor> WeightStore::next_version() {
  if (compute_ != at::kBFloat16 || forecast_.any()) return {};
  take_next();
  return newest_->tensors;
}

void WeightStore::finish_update(bool version_is_written) {
  if (forecast_.any()) forecast_.observe(master_buffer().flat);
  ++version_;
  if (!version_is_written) publish();
}

void WeightStore::restart(int64_t version) {
  forecast_.restart();
  version_ = version;
  publish();
}

void WeightStore::begin_segment() {
  if (!forecast_.any()) return;
  restart(version_);
  forecast_.observe(master_buffer().flat);
}

}  // namespace gyre
