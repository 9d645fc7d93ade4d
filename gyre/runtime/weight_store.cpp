#include "gyre/runtime/weight_store.h"

#include <mutex>
#include <utility>

namespace gyre {
namespace {

// The same memory under new tensor objects: layers take the same object for the same version.
void make_new_objects(FlatBuffer& buffer) {
  for (at::Tensor& tensor : buffer.tensors) tensor = tensor.detach();
}

}  // namespace

// Buffers that nobody reads. Readers on any thread give theirs back.
class WeightStore::BufferPool {
 public:
  std::unique_ptr<WeightVersion> take() {
    const std::lock_guard lock(mutex_);
    ++live_;
    if (free_.empty()) return nullptr;
    auto version = std::move(free_.back());
    free_.pop_back();
    return version;
  }
  void give_back(std::unique_ptr<WeightVersion> version) {
    const std::lock_guard lock(mutex_);
    --live_;
    free_.push_back(std::move(version));
  }
  size_t live() const {
    const std::lock_guard lock(mutex_);
    return live_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<WeightVersion>> free_;
  size_t live_ = 0;
};

WeightStore::WeightStore(std::vector<ParameterSpec> specs, at::ScalarType compute, at::Device device, bool shared,
                         const ForecastOptions& forecast)
    : specs_(std::move(specs)),
      compute_(compute),
      device_(device),
      shared_(shared),
      forecast_(forecast),
      pool_(std::make_shared<BufferPool>()) {
  if (in_place()) {
    latest_ = take_buffer();
    masters_ = latest_->buffer;
  } else {
    masters_ = make_flat_buffer(specs_, at::kFloat, device_);
    publish();
  }
}

std::shared_ptr<WeightVersion> WeightStore::take_buffer() {
  auto version = pool_->take();
  if (!version) {
    version = std::make_unique<WeightVersion>();
    version->buffer = make_flat_buffer(specs_, compute_, device_);
    if (forecast_.backward()) version->corrected = make_flat_buffer(specs_, compute_, device_);
  }
  return {version.release(),
          [pool = pool_](WeightVersion* unread) { pool->give_back(std::unique_ptr<WeightVersion>(unread)); }};
}

void WeightStore::publish() {
  latest_.reset();  // the outgoing version's buffer is free unless a reader holds it
  latest_ = take_buffer();
  latest_->number = version_;
  if (in_place()) return;
  if (forecast_.forward()) {
    forecast_.write(masters_.flat, latest_->buffer.flat);
  } else {
    latest_->buffer.flat.copy_(masters_.flat);
  }
  if (forecast_.backward()) forecast_.write(masters_.flat, latest_->corrected.flat);
}

std::span<const at::Tensor> WeightStore::begin_update() {
  // fp32: the latest version is the master. If anyone reads it, the update goes to a copy and they keep the old buffer.
  if (in_place() && (shared_ || latest_.use_count() > 1)) {
    auto next = take_buffer();
    next->buffer.flat.copy_(masters_.flat);
    latest_ = std::move(next);
    masters_ = latest_->buffer;
  }
  return masters_.tensors;
}

void WeightStore::finish_update() {
  if (forecast_.any()) forecast_.observe(masters_.flat);
  make_version(version_ + 1);
}

void WeightStore::restart(int64_t version) {
  forecast_.restart();
  make_version(version);
}

void WeightStore::begin_segment() {
  if (!forecast_.any()) return;
  restart(version_);
  forecast_.observe(masters_.flat);
}

void WeightStore::make_version(int64_t version) {
  version_ = version;
  if (in_place()) {
    latest_->number = version_;
  } else {
    publish();
  }
  make_new_objects(latest_->buffer);
  make_new_objects(latest_->corrected);
}

size_t WeightStore::live_buffers() const {
  return pool_->live() + (in_place() ? 0 : 1);
}

}  // namespace gyre
