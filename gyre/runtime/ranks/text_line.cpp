#include "gyre/runtime/ranks/text_line.h"

#include <utility>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr int64_t kCapacity = 4;  // a text and its answer

}  // namespace

TextLine::TextLine(Ranks& ranks, int other, int number) : ranks_(ranks) {
  const bool is_rank_0 = ranks.rank() == 0;
  const int follower = is_rank_0 ? other : ranks.rank();
  const LinkId down{LinkKind::Command, number, follower}, up{LinkKind::Answer, number, follower};
  out_ = ranks.sender(other, 0, is_rank_0 ? down : up, kCapacity, bell_);
  in_ = ranks.receiver(other, 0, is_rank_0 ? up : down, kCapacity, bell_);
}

void TextLine::say(const std::string& text) {
  Message message;
  message.tensors = {to_tensor(text)};
  out_->send(std::move(message));
}

std::string TextLine::hear(const std::stop_token& stop) {
  const Ranks::Watch watch(ranks_, bell_, {});
  const std::stop_callback wake(stop, [this] { bell_.ring(); });
  for (;;) {
    const uint64_t ticket = bell_.ticket();
    if (const auto message = in_->try_receive()) return to_text(message->tensors.at(0));
    if (const auto failure = ranks_.failure()) throw RunError(*failure);
    if (stop.stop_requested()) throw RunError("the process ends");
    bell_.wait(ticket);
  }
}

}  // namespace gyre
