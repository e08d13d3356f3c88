// SPDX-License-Identifier: Apache-2.0
#include "penstock/expr.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "penstock/status.h"

namespace penstock {
namespace {

std::string CopiedBytes(const void* data, size_t bytes) {
  std::string result(bytes, '\0');
  if (bytes > 0) std::memcpy(result.data(), data, bytes);
  return result;
}

Attrs ConstantAttrs(DType dtype, std::vector<int64_t> dims, std::string data,
                    std::vector<std::string> strings = {}) {
  return {{"dtype", dtype},
          {"dims", std::move(dims)},
          {"data", std::move(data)},
          {"strings", std::move(strings)}};
}

template <class T>
Expr ScalarConstant(T value) {
  return Apply1("Constant", ConstantAttrs(DTypeOf<T>, {}, CopiedBytes(&value, sizeof value)), {});
}

// The constant of the dtype that has the size and signedness of T.
template <class T>
Expr SizedConstant(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return ScalarConstant(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return ScalarConstant(static_cast<std::conditional_t<sizeof(T) <= 4, float, double>>(value));
  } else if constexpr (std::is_signed_v<T>) {
    if constexpr (sizeof(T) == 1)
      return ScalarConstant<int8_t>(value);
    else if constexpr (sizeof(T) == 2)
      return ScalarConstant<int16_t>(value);
    else if constexpr (sizeof(T) == 4)
      return ScalarConstant<int32_t>(value);
    else
      return ScalarConstant<int64_t>(value);
  } else {
    if constexpr (sizeof(T) == 1)
      return ScalarConstant<uint8_t>(value);
    else if constexpr (sizeof(T) == 2)
      return ScalarConstant<uint16_t>(value);
    else if constexpr (sizeof(T) == 4)
      return ScalarConstant<uint32_t>(value);
    else
      return ScalarConstant<uint64_t>(value);
  }
}

template <class T>
std::shared_ptr<const Expr::Node> LiteralNode(T value) {
  const Expr constant = SizedConstant(value);
  Expr::Node node = *NodeOf(constant);
  if constexpr (std::is_same_v<T, bool>) {
    return NodeOf(constant);
  } else if constexpr (std::is_floating_point_v<T>) {
    node.literal.emplace_back(static_cast<double>(value));
  } else if constexpr (std::is_signed_v<T>) {
    node.literal.emplace_back(static_cast<int64_t>(value));
  } else {
    node.literal.emplace_back(static_cast<uint64_t>(value));
  }
  return std::make_shared<const Expr::Node>(std::move(node));
}

}  // namespace

template <class T>
requires std::is_arithmetic_v<T> Expr::Expr(T value) : node_(LiteralNode(value)) {}
template Expr::Expr(bool);
template Expr::Expr(char);
template Expr::Expr(signed char);
template Expr::Expr(unsigned char);
template Expr::Expr(short);           // NOLINT: the language's own types
template Expr::Expr(unsigned short);  // NOLINT
template Expr::Expr(int);
template Expr::Expr(unsigned);
template Expr::Expr(long);                // NOLINT
template Expr::Expr(unsigned long);       // NOLINT
template Expr::Expr(long long);           // NOLINT
template Expr::Expr(unsigned long long);  // NOLINT
template Expr::Expr(float);
template Expr::Expr(double);

Expr::Expr(std::string_view value)
    : Expr(Apply1("Constant", ConstantAttrs(kString, {}, "", {std::string(value)}), {})) {}

Expr Expr::Constant(const Tensor& value) {
  if (value.kind() != TensorSpec::Kind::kDense || !value.present())
    return Mistake(absl::InvalidArgumentError("Constant: the value must be a dense tensor"));
  std::vector<int64_t> dims(value.dims().begin(), value.dims().end());
  if (value.dtype() != kString) {
    return Apply1("Constant",
                  ConstantAttrs(value.dtype(), dims, CopiedBytes(value.raw(), value.byte_count())),
                  {});
  }
  std::vector<std::string> strings;
  for (int64_t i = 0; i < value.element_count(); ++i) strings.emplace_back(value.string(i));
  return Apply1("Constant", ConstantAttrs(kString, dims, "", std::move(strings)), {});
}

Expr Mistake(absl::Status status) {
  Expr::Node node;
  node.status = std::move(status);
  return ExprAccess::Make(std::move(node));
}

const Spec& Expr::spec() const {
  return node_->spec;
}
const absl::Status& Expr::status() const {
  return node_->status;
}
DType Expr::dtype() const {
  return spec().kind() == Spec::Kind::kLeaf ? spec().leaf().dtype : DType::kInvalid;
}

Expr Expr::operator[](std::string_view key) const {
  if (!status().ok()) return *this;
  if (spec().kind() != Spec::Kind::kDict) {
    return Mistake(absl::InvalidArgumentError(absl::StrCat(
        "no member '", std::string(key), "': the value is not a dict but ", spec().ToString())));
  }
  for (size_t i = 0; i < spec().size(); ++i)
    if (spec().key(i) == key) return node_->members[i];
  return Mistake(absl::InvalidArgumentError(
      absl::StrCat("no member '", std::string(key), "' in ", spec().ToString())));
}

Expr Expr::At(int64_t i) const {
  if (!status().ok()) return *this;
  if (spec().kind() == Spec::Kind::kLeaf) return (*this)[Expr(i)];
  if (i < 0 || static_cast<size_t>(i) >= node_->members.size()) {
    return Mistake(
        absl::InvalidArgumentError(absl::StrCat("no member [", i, "] in ", spec().ToString())));
  }
  return node_->members[i];
}

Expr Expr::operator[](const Expr& index) const {
  return Apply1("Index", {}, {*this, index});
}

Expr Tuple(std::vector<Expr> members) {
  Expr::Node node;
  std::vector<Spec> specs;
  for (const Expr& member : members) {
    if (!member.status().ok()) return member;
    specs.push_back(member.spec());
  }
  node.spec = Spec::Tuple(std::move(specs));
  node.members = std::move(members);
  return ExprAccess::Make(std::move(node));
}

Expr Struct(std::vector<std::pair<std::string, Expr>> members) {
  Expr::Node node;
  std::vector<std::pair<std::string, Spec>> specs;
  for (const auto& [key, member] : members) {
    if (!member.status().ok()) return member;
    specs.emplace_back(key, member.spec());
  }
  node.spec = Spec::Dict(std::move(specs));
  for (size_t i = 0; i < node.spec.size(); ++i) {
    // If several members have the same key, the last one counts, as in Spec::Dict.
    const auto last = std::find_if(members.rbegin(), members.rend(), [&](const auto& member) {
      return member.first == node.spec.key(i);
    });
    node.members.push_back(last->second);
  }
  return ExprAccess::Make(std::move(node));
}

Expr NestOf(const Spec& spec, std::vector<Expr> leaves) {
  if (spec.kind() == Spec::Kind::kLeaf) return leaves[0];
  Expr::Node node;
  node.spec = spec;
  size_t next = 0;
  for (size_t i = 0; i < spec.size(); ++i) {
    const size_t count = spec.member(i).leaves().size();
    node.members.push_back(NestOf(
        spec.member(i), std::vector<Expr>(leaves.begin() + next, leaves.begin() + next + count)));
    next += count;
  }
  return ExprAccess::Make(std::move(node));
}

void AppendLeaves(const Expr& x, std::vector<Expr>& leaves) {
  if (x.spec().kind() == Spec::Kind::kLeaf) {
    leaves.push_back(x);
    return;
  }
  for (const Expr& member : NodeOf(x)->members) AppendLeaves(member, leaves);
}

Application::~Application() {
  std::vector<Expr> left = std::move(inputs);
  while (!left.empty()) {
    const std::shared_ptr<const Application> maker = NodeOf(left.back())->maker;
    left.pop_back();
    if (maker == nullptr || maker.use_count() > 1) continue;
    // No other Expr shares the Application, which was not created const.
    std::vector<Expr>& its = const_cast<Application&>(*maker).inputs;
    std::move(its.begin(), its.end(), std::back_inserter(left));
    its.clear();
  }
}

std::vector<Expr> Apply(absl::string_view op, Attrs attrs, std::vector<Expr> inputs) {
  const OpRow& row = *FindOp(op);
  auto application = std::make_shared<Application>();
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Expr& input = inputs[i];
    if (!input.status().ok()) return {input};
    if (input.spec().kind() != Spec::Kind::kLeaf) {
      return {Mistake(absl::InvalidArgumentError(
          absl::StrCat(op, ": argument ", i, " is a nest ", input.spec().ToString(),
                       "; it must be a tensor: select a member")))};
    }
    specs.push_back(input.spec().leaf());
    if (const Application* maker = NodeOf(input)->maker.get(); maker != nullptr) {
      application->depth = std::max(application->depth, maker->depth + 1);
    }
  }
  if (application->depth > kMaxDepth) {
    return {Mistake(absl::InvalidArgumentError(absl::StrCat(
        op, ": more than ", kMaxDepth, " operations in one chain; split them over several Maps")))};
  }
  if (row.random) attrs["random"] = int64_t{0};  // numbered when the function is complete
  auto outputs = InferOp(row, attrs, specs);
  if (!outputs.ok()) return {Mistake(outputs.status())};
  application->op = row.name;
  application->attrs = std::move(attrs);
  application->inputs = std::move(inputs);
  application->outputs = *std::move(outputs);
  application->random = row.random;
  std::vector<Expr> results;
  for (size_t i = 0; i < application->outputs.size(); ++i) {
    Expr::Node node;
    node.spec = application->outputs[i];
    node.maker = application;
    node.number = static_cast<uint32_t>(i);
    results.push_back(ExprAccess::Make(std::move(node)));
  }
  return results;
}

Expr Apply1(absl::string_view op, Attrs attrs, std::vector<Expr> inputs) {
  return Apply(op, std::move(attrs), std::move(inputs))[0];
}

Expr SymbolicInput(const Spec& spec) {
  auto element = std::make_shared<const TracedElement>(TracedElement{spec});
  std::vector<Expr> leaves;
  for (size_t i = 0; i < spec.leaves().size(); ++i) {
    Expr::Node node;
    node.spec = spec.leaves()[i];
    node.element = element;
    node.number = static_cast<uint32_t>(i);
    leaves.push_back(ExprAccess::Make(std::move(node)));
  }
  if (spec.kind() == Spec::Kind::kLeaf) return leaves[0];
  // The nest itself also refers to its element, since the nest may have no leaf.
  Expr::Node node = *NodeOf(NestOf(spec, std::move(leaves)));
  node.element = element;
  return ExprAccess::Make(std::move(node));
}

}  // namespace penstock
