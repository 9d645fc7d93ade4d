#include "gyre/runtime/ranks/text_line.h"

#include <utility>

namespace gyre {
namespace {

constexpr int64_t kCapacity = 4;  // enough for a text and its answer

}  // namespace

TextLine::TextLine(Ranks& ranks, int other, int number) : ranks_(ranks) {
  const bool is_rank_0 = ranks.rank() == 0;
  const int follower = is_rank_0 ? other : ranks.rank();
  const LinkId down = LinkId::of_rank(LinkKind::Command, follower, number);
  const LinkId up = LinkId::of_rank(LinkKind::Answer, follower, number);
  out_ = ranks.sender(other, 0, is_rank_0 ? down : up, kCapacity, bell_);
  in_ = ranks.receiver(other, 0, is_rank_0 ? up : down, kCapacity, bell_);
}

void TextLine::say(const std::string& text) {
  Message message;
  message.tensors = {to_tensor(text)};
  out_->send(std::move(message));
}

std::string TextLine::hear(const std::stop_token& stop, Patience patience) {
  return to_text(wait_for(ranks_, *in_, bell_, stop, std::move(patience)).tensors.at(0));
}

}  // namespace gyre
