#include "gyre/runtime/transport/link.h"

#include <fmt/format.h>

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
  return fmt::format("the {} link of {}:{}", kKinds[static_cast<int>(id.kind)], id.pipeline, id.stage);
}

}  // namespace gyre
