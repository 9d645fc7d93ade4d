#include "gyre/runtime/transport/link.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace gyre {

void send_from(at::Device device, Sender& link, Message message) {
  message.ready = DeviceEvent::record(device);
  link.send(std::move(message));
}

std::optional<Message> arrived_on(at::Device device, std::optional<Message> message) {
  if (!message) return message;
  for (at::Tensor& tensor : message->tensors) tensor = on_device(tensor, device, message->ready);
  return message;
}

std::string to_string(const LinkId& id) {
  constexpr const char* kKinds[] = {"activation",  "gradient", "reduction", "sum",      "version",
                                    "tied weight", "tied sum", "norm",      "norm sum", "control",
                                    "report",      "command",  "answer"};
  static_assert(std::size(kKinds) == static_cast<size_t>(LinkKind::Answer) + 1);
  const std::string link = fmt::format("the {} link of ", kKinds[static_cast<size_t>(id.kind)]);
  switch (id.kind) {
    case LinkKind::Sum:
    case LinkKind::Version:
    case LinkKind::Norm:
    case LinkKind::NormSum:
      return link + fmt::format("{}:{}, shard {}", id.pipeline, id.stage, id.shard);
    case LinkKind::Control:
    case LinkKind::Report:
      return link + fmt::format("worker {}", id.stage);
    case LinkKind::Command:
    case LinkKind::Answer:
      return link + fmt::format("rank {}, line {}", id.stage, id.pipeline);
    default:
      return link + fmt::format("{}:{}", id.pipeline, id.stage);
  }
}

}  // namespace gyre
