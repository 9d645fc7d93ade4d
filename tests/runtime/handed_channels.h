// Channels as between devices of several processes, for ranks that are threads: tensors are copied and handed over, and
// leases end at once.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/runtime/ranks/device_channel.h"

namespace gyre::testing_support {

// What all ranks of a test share.
struct Handover {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::deque<std::vector<at::Tensor>>> under_way;  // [channel]
  int64_t ids = 0, messages = 0;
  int devices = 1000;  // which ranks have in turn
};

class HandedChannel final : public DeviceChannel {
 public:
  HandedChannel(std::shared_ptr<Handover> handover, std::string id)
      : handover_(std::move(handover)), id_(std::move(id)) {}

  void send(Message message) override {
    for (at::Tensor& tensor : message.tensors) tensor = tensor.clone();
    message.lease.reset();
    const std::lock_guard lock(handover_->mutex);
    handover_->under_way[id_].push_back(std::move(message.tensors));
    ++handover_->messages;
    handover_->changed.notify_all();
  }
  Message receive(const std::vector<at::Tensor>& like) override {
    std::unique_lock lock(handover_->mutex);
    auto& tensors = handover_->under_way[id_];
    handover_->changed.wait(lock, [&] { return !tensors.empty() || aborted_; });
    if (tensors.empty()) throw RunError("the channel is closed");
    Message message;
    message.tensors = std::move(tensors.front());
    tensors.pop_front();
    if (message.tensors.size() != like.size()) throw RunError("another message than was announced");
    for (size_t i = 0; i < like.size(); ++i) {
      const at::Tensor& tensor = message.tensors[i];
      if (tensor.sizes() != like[i].sizes() || tensor.scalar_type() != like[i].scalar_type()) {
        throw RunError("another tensor than was announced");
      }
    }
    return message;
  }
  void abort() override {
    const std::lock_guard lock(handover_->mutex);
    aborted_ = true;
    handover_->changed.notify_all();
  }

 private:
  std::shared_ptr<Handover> handover_;
  std::string id_;
  bool aborted_ = false;
};

class HandedChannels final : public DeviceChannels {
 public:
  HandedChannels(std::shared_ptr<Handover> handover, std::string identity)
      : handover_(std::move(handover)), identity_(std::move(identity)) {}
  at::Device device() const override { return at::kCPU; }
  std::string identity() const override { return identity_; }
  std::string new_id() override {
    const std::lock_guard lock(handover_->mutex);
    return std::to_string(++handover_->ids);
  }
  std::unique_ptr<DeviceChannel> open(const std::string& id, bool) override {
    return std::make_unique<HandedChannel>(handover_, id);
  }

 private:
  std::shared_ptr<Handover> handover_;
  std::string identity_;
};

}  // namespace gyre::testing_support
