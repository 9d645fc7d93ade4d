#include "gyre/kernels/onednn/packed_matrix.h"

#include <ATen/ATen.h>

#include <unordered_map>

#include "gyre/kernels/onednn/api.h"

namespace gyre::onednn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

class Packed final : public PackedMatrix {
 public:
  Packed(const at::Tensor& weight, const at::Tensor& bias) : bias_(bias) {
    const int64_t out = weight.size(0), in = weight.size(1);
    const auto type = weight.scalar_type() == at::kFloat ? memory::data_type::f32 : memory::data_type::bf16;
    const memory::desc x({1, in}, type, Tag::ab), y({1, out}, type, Tag::ab);
    const memory::desc of_bias = bias.defined() ? memory::desc({1, out}, type, Tag::ab) : memory::desc();
    const auto product = matmul(engine_, x, memory::desc({in, out}, type, Tag::any), of_bias, y);
    memory plain({{in, out}, type, memory::dims{1, in}}, engine_, weight.data_ptr());
    bytes_ = at::empty({static_cast<int64_t>(product.weights_desc().get_size())}, at::kByte);
    memory packed(product.weights_desc(), engine_, bytes_.data_ptr());
    dnnl::reorder(plain, packed).execute(stream_, plain, packed);
    stream_.wait();
    product_ = dnnl::matmul(product);
    x_ = memory(x, engine_, nullptr);
    y_ = memory(y, engine_, nullptr);
    arguments_ = {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, y_}};
    if (bias.defined()) arguments_.emplace(DNNL_ARG_BIAS, memory(of_bias, engine_, bias_.data_ptr()));
  }

  void multiply(const void* x, void* y) override {
    x_.set_data_handle(const_cast<void*>(x));  // oneDNN takes non-const pointers also for what it only reads
    y_.set_data_handle(y);
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  at::Tensor bytes_, bias_;
  dnnl::matmul product_;
  memory x_, y_;  // share their handles with `arguments_`
  std::unordered_map<int, memory> arguments_;
};

}  // namespace

std::unique_ptr<PackedMatrix> pack(const at::Tensor& weight, const at::Tensor& bias) {
  return std::make_unique<Packed>(weight, bias);
}

}  // namespace gyre::onednn
