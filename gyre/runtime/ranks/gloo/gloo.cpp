// Connections over c10d: a group of two processes for each, on Gloo. What differs between versions of libtorch is here.
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <string>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/runtime/ranks/wire.h"

namespace gyre {
namespace {

constexpr std::chrono::seconds kConnecting{60};
constexpr std::chrono::hours kForEver{24 * 365};  // deadlines are the monitor's
constexpr int kTag = 1;

class GlooTransfer final : public Transfer {
 public:
  // `memory` is Gloo's until the transfer has ended.
  GlooTransfer(c10::intrusive_ptr<c10d::Work> work, at::Tensor memory)
      : memory_(std::move(memory)), work_(std::move(work)) {}
  void wait() override {
    bool arrived = false;
    try {
      arrived = work_->wait(kForEver);
    } catch (const std::exception&) {  // says an address and no process
    }
    if (!arrived) throw RunError("the connection is closed");
  }
  void abort() override { work_->abort(); }

 private:
  at::Tensor memory_;
  c10::intrusive_ptr<c10d::Work> work_;
};

class GlooWire final : public Wire {
 public:
  GlooWire(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, int other) : group_(std::move(group)), other_(other) {}
  std::unique_ptr<Transfer> send(at::Tensor bytes) override {
    std::vector<at::Tensor> one = {bytes};
    return std::make_unique<GlooTransfer>(posted([&] { return group_->send(one, other_, kTag); }), std::move(bytes));
  }
  std::unique_ptr<Transfer> receive(at::Tensor bytes) override {
    std::vector<at::Tensor> one = {bytes};
    return std::make_unique<GlooTransfer>(posted([&] { return group_->recv(one, other_, kTag); }), std::move(bytes));
  }

 private:
  template <typename Post>
  static c10::intrusive_ptr<c10d::Work> posted(Post post) {
    try {
      return post();
    } catch (const std::exception&) {  // says an address and no process
      throw RunError("the connection is closed");
    }
  }
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  int other_;
};

// Later versions would use libuv, which not every build of theirs has.
template <typename Options>
void use_plain_sockets(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

c10::intrusive_ptr<c10d::Store> make_store(const MeetingPlace& place) {
  if (!place.directory.empty()) {
    return c10::make_intrusive<c10d::FileStore>(place.directory + "/store", place.world);
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = place.serves;
  options.waitWorkers = false;
  options.timeout = kConnecting;
  use_plain_sockets(options);
  return c10::make_intrusive<c10d::TCPStore>(place.address, options);
}

class GlooRendezvous final : public Rendezvous {
 public:
  explicit GlooRendezvous(const MeetingPlace& place)
      : interface_(place.interface.empty() ? "127.0.0.1" : place.interface) {
    try {
      store_ = c10::make_intrusive<c10d::PrefixStore>(fmt::format("gyre/{}", place.attempt), make_store(place));
    } catch (const std::exception& error) {
      const std::string where =
          place.directory.empty() ? fmt::format("{}:{}", place.address, place.port) : place.directory;
      throw InputError(fmt::format("{}: the other processes cannot be met there: {}", where, first_line(error.what())));
    }
  }

  void leave(const std::string& key, const std::string& note) override {
    store_->set(key, std::vector<uint8_t>(note.begin(), note.end()));
  }
  std::string find(const std::string& key, std::chrono::seconds deadline) override {
    try {
      store_->wait({key}, deadline);
      const std::vector<uint8_t> note = store_->get(key);
      return {note.begin(), note.end()};
    } catch (const std::exception&) {
      throw InputError(fmt::format("{} did not come in {} s; were all of them started, for the same address?", key,
                                   deadline.count()));
    }
  }
  std::unique_ptr<Wire> connect(const std::string& name, bool first) override {
    const auto options = c10d::ProcessGroupGloo::Options::create(kConnecting);
    options->threads = 1;
    const int rank = first ? 0 : 1;
    try {
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(interface_));
      return std::make_unique<GlooWire>(c10::make_intrusive<c10d::ProcessGroupGloo>(
                                            c10::make_intrusive<c10d::PrefixStore>(name, store_), rank, 2, options),
                                        1 - rank);
    } catch (const std::exception& error) {
      throw InputError(
          fmt::format("the connection {} over {} cannot be made: {}", name, interface_, first_line(error.what())));
    }
  }

 private:
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  std::string interface_;
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_rendezvous(const MeetingPlace& place) {
  return std::make_unique<GlooRendezvous>(place);
}

}  // namespace gyre
