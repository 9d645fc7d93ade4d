// Records: what one sublayer or layer saves for the backward of one microbatch. A record is a struct of tensors and
// other records whose members() lists all of its members, so that what is saved can be counted.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gyre {

// Calls visit(tensor) for every defined tensor of a record, including those of nested records.
template <typename Visit>
void for_each_tensor(const std::vector<at::Tensor>& tensors, Visit&& visit) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) visit(tensor);
  }
}
// What a ModuleLayer keeps in its autograd graph is not counted.
template <typename Other, typename Visit>
void for_each_tensor(const std::shared_ptr<Other>&, Visit&&) {}

template <typename Member, typename Visit>
void for_each_tensor(const Member& member, Visit&& visit) {
  if constexpr (std::is_same_v<Member, at::Tensor>) {
    if (member.defined()) visit(member);
  } else if constexpr (!std::is_arithmetic_v<Member>) {
    std::apply(
        [&](const auto&... members) {
          static_assert(sizeof(Member) == (sizeof(members) + ...), "members() leaves out a member");
          (for_each_tensor(members, visit), ...);
        },
        member.members());
  }
}

}  // namespace gyre
