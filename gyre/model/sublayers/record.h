// Records: what one microbatch in flight keeps, between forward and backward, of one sublayer or layer. A record is a
// struct of tensors and of other records that names all of its members once more, in members(), so that what is kept
// can be counted.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gyre {

// Calls visit(tensor) for every tensor of a record, those of its members included.
template <typename Visit>
void for_each_tensor(const std::vector<at::Tensor>& tensors, Visit&& visit) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) visit(tensor);
  }
}
// What an adapter keeps besides tensors is not counted.
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
