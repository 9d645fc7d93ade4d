// What one process hears of another while messages are under way.
#include "gyre/runtime/ranks/peer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_directory.h"

namespace gyre {
namespace {

// A message may take longer than silence is borne, and beats wait behind it: every frame is a sign of life.
TEST(Peer, IsHeardWithEveryFrameOfALargeMessage) {
  const testing_support::TemporaryDirectory place;
  const auto connect = [&](bool first) {
    return make_rendezvous({.directory = place.path().string(), .world = 2})->connect("link", first, "the other");
  };
  auto other_wire = std::async(std::launch::async, connect, false);
  auto wire = connect(true);

  std::vector<bool> heard;  // one thread writes, until `delivered`
  std::promise<std::vector<bool>> delivered;
  Peer receiver(std::move(wire), {[&](bool in_part) { heard.push_back(in_part); },
                                  [&](const Envelope& envelope) {
                                    if (envelope.kind == Envelope::Kind::Message) delivered.set_value(heard);
                                  },
                                  [](const std::string&) {}});
  Peer sender(other_wire.get(), {[](bool) {}, [](const Envelope&) {}, [](const std::string&) {}});
  receiver.start();
  sender.start();
  Envelope envelope;
  envelope.message.tensors = {at::zeros({3 * static_cast<int64_t>(kFrameBytes)}, at::kByte)};
  sender.send(std::move(envelope));
  EXPECT_EQ(delivered.get_future().get(), (std::vector<bool>{true, true, true, false}));
  for (Peer* peer : {&receiver, &sender}) peer->close();
  for (Peer* peer : {&receiver, &sender}) peer->join();
}

}  // namespace
}  // namespace gyre
