// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/fingerprint.h"

#include <bit>
#include <string>
#include <type_traits>
#include <variant>

#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "penstock/tensor.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock {
namespace {

void AppendAttrs(const Attrs& attrs, StateWriter& out);

void AppendSpec(const Spec& spec, StateWriter& out) {
  out.WriteUnsigned(spec.fingerprint());
}

void AppendTensor(const Tensor& tensor, StateWriter& out) {
  out.WriteUnsigned(static_cast<uint64_t>(tensor.dtype()));
  if (!tensor.present()) return;
  out.WriteUnsigned(static_cast<uint64_t>(tensor.kind()));
  out.WriteUnsigned(tensor.dims().size());
  for (int64_t dim : tensor.dims()) out.WriteInt(dim);
  if (tensor.dtype() == kString) {
    for (int64_t i = 0; i < tensor.element_count(); ++i) out.WriteString(tensor.string(i));
  } else {
    out.WriteString({static_cast<const char*>(tensor.raw()), tensor.byte_count()});
  }
  auto append_part = [&](absl::Span<const int64_t> part) {
    out.WriteUnsigned(part.size());
    for (int64_t value : part) out.WriteInt(value);
  };
  for (int i = 0; i < tensor.ragged_rank(); ++i) append_part(tensor.row_splits(i));
  if (tensor.kind() == TensorSpec::Kind::kSparse) {
    append_part(tensor.indices());
    append_part(tensor.dense_shape());
  }
}

void AppendFunction(const FunctionDef& function, StateWriter& out) {
  AppendSpec(function.input, out);
  out.WriteUnsigned(function.ops.size());
  for (const OpDef& op : function.ops) {
    out.WriteString(op.op);
    AppendAttrs(op.attrs, out);
    out.WriteUnsigned(op.inputs.size());
    for (uint32_t input : op.inputs) out.WriteUnsigned(input);
    for (const TensorSpec& output : op.outputs) AppendSpec(output, out);
  }
  out.WriteUnsigned(function.results.size());
  for (uint32_t result : function.results) out.WriteUnsigned(result);
  AppendSpec(function.output, out);
  out.WriteBool(function.deterministic);
}

// One overload per alternative of Attr.
struct AppendValue {
  StateWriter& out;
  void operator()(int64_t value) const { out.WriteInt(value); }
  void operator()(double value) const { out.WriteUnsigned(std::bit_cast<uint64_t>(value)); }
  void operator()(bool value) const { out.WriteBool(value); }
  void operator()(const std::string& value) const { out.WriteString(value); }
  void operator()(DType value) const { out.WriteUnsigned(static_cast<uint64_t>(value)); }
  void operator()(const Spec& value) const { AppendSpec(value, out); }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    out.WriteUnsigned(values.size());
    for (const T& value : values) (*this)(value);
  }
  void operator()(const std::shared_ptr<const FunctionDef>& value) const {
    AppendFunction(*value, out);
  }
  void operator()(const ConstantElement& value) const {
    AppendSpec(value->spec(), out);
    for (size_t i = 0; i < value->size(); ++i) AppendTensor(value->tensor(i), out);
  }
};

// True for a Python function that states its version. Its pickle then does not enter the
// fingerprint, since pickles of one function may differ between processes.
bool HasVersionForPickle(const Attrs& attrs) {
  const auto version = attrs.find("version");
  return attrs.contains("pickle") && version != attrs.end() &&
         !std::get<std::string>(version->second).empty();
}

void AppendAttrs(const Attrs& attrs, StateWriter& out) {
  const bool version_for_pickle = HasVersionForPickle(attrs);
  out.WriteUnsigned(attrs.size());
  for (const auto& [name, value] : attrs) {
    if (version_for_pickle && name == "pickle") continue;
    out.WriteString(name);
    out.WriteUnsigned(value.index());
    std::visit(AppendValue{out}, value);
  }
}

}  // namespace

uint64_t FingerprintOf(std::string_view op, int version, const Attrs& attrs,
                       const std::vector<NodePtr>& inputs) {
  StateWriter out;
  out.WriteString(op);
  out.WriteInt(version);
  AppendAttrs(attrs, out);
  out.WriteUnsigned(inputs.size());
  for (const NodePtr& input : inputs) out.WriteUnsigned(input->fingerprint);
  return XXH3_64bits(out.bytes().data(), out.bytes().size());
}

Attrs Identifying(const NodeKind& kind, Attrs attrs) {
  for (const AttrRule& rule : kind.attrs)
    if (!rule.identifies) attrs.erase(rule.name);
  return attrs;
}

uint64_t OwnFingerprintOf(const Dataset::Node& node) {
  const NodeKind* kind = FindNodeKind(node.op);
  return FingerprintOf(node.op, node.version,
                       kind == nullptr ? node.attrs : Identifying(*kind, node.attrs), {});
}

}  // namespace penstock
