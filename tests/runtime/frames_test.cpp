// Envelopes as frames: what comes out is what went in, whatever its size; bytes that no writer wrote are an error.
#include "gyre/runtime/ranks/frames.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>

#include "gyre/core/error.h"

namespace gyre {
namespace {

std::vector<std::vector<std::byte>> frames_of(Envelope envelope) {
  FrameWriter writer(std::move(envelope));
  std::vector<std::vector<std::byte>> frames;
  do {
    frames.emplace_back(kFrameBytes);
    frames.back().resize(writer.next(frames.back().data()));
  } while (!writer.done());
  return frames;
}

// A reader's memory is always a whole frame.
std::optional<Envelope> read(FrameReader& reader, std::vector<std::byte> frame) {
  frame.resize(kFrameBytes);
  return reader.next(frame.data());
}

Envelope example(const std::vector<at::Tensor>& tensors) {
  Envelope envelope{Envelope::Kind::Message, 7, {LinkKind::Version, 3, 12}, {}};
  envelope.message = {-1, tensors, {1.5, -2, 0}, {}};
  return envelope;
}

void expect_same(const Envelope& a, const Envelope& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.segment, b.segment);
  EXPECT_EQ(a.link, b.link);
  EXPECT_EQ(a.message.number, b.message.number);
  EXPECT_EQ(a.message.values, b.message.values);
  ASSERT_EQ(a.message.tensors.size(), b.message.tensors.size());
  for (size_t i = 0; i < a.message.tensors.size(); ++i) {
    EXPECT_EQ(a.message.tensors[i].scalar_type(), b.message.tensors[i].scalar_type());
    EXPECT_TRUE(a.message.tensors[i].equal(b.message.tensors[i]));
  }
}

TEST(Frames, BringBackEveryEnvelope) {
  const at::Tensor large = at::arange(3 * static_cast<int64_t>(kFrameBytes) / 4 + 17, at::kFloat);
  const std::vector<std::vector<at::Tensor>> all = {
      {},
      {at::empty({0, 4})},
      {at::scalar_tensor(3.25)},
      {at::arange(6, at::kDouble).view({2, 3}).t()},  // not contiguous
      {at::ones({5}, at::kBFloat16), at::empty({0}), at::ones({2, 2}, at::kLong), at::zeros({1}, at::kBool)},
      {large},
      {at::ones({3}), large, at::empty({0}), large.to(at::kBFloat16), at::empty({0})}};
  FrameReader reader;  // one reader for everything
  for (const auto& tensors : all) {
    const auto frames = frames_of(example(tensors));
    for (size_t i = 0; i < frames.size(); ++i) {
      EXPECT_LE(frames[i].size(), kFrameBytes);
      const auto envelope = read(reader, frames[i]);
      ASSERT_EQ(envelope.has_value(), i + 1 == frames.size());
      if (envelope) expect_same(example(tensors), *envelope);
    }
  }
}

TEST(Frames, WhatNobodyWroteIsAnErrorOrAnEnvelope) {
  std::mt19937 random(1);
  const auto frames = frames_of(example({at::arange(20), at::ones({2, 3})}));
  ASSERT_EQ(frames.size(), 1U);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<std::byte> frame = frames[0];
    frame[random() % frame.size()] ^= static_cast<std::byte>(1U << (random() % 8));
    FrameReader reader;
    try {
      read(reader, std::move(frame));
    } catch (const RunError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace gyre
