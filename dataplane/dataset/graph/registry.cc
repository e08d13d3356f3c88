// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/registry.h"

#include <map>
#include <type_traits>
#include <utility>

#include "control/sync/mutex.h"
#include "penstock/check.h"

namespace penstock {
namespace {

template <AttrType type>
using Alternative = std::variant_alternative_t<static_cast<size_t>(type), Attr>;
static_assert(std::is_same_v<Alternative<AttrType::kInt>, int64_t>);
static_assert(std::is_same_v<Alternative<AttrType::kDouble>, double>);
static_assert(std::is_same_v<Alternative<AttrType::kBool>, bool>);
static_assert(std::is_same_v<Alternative<AttrType::kString>, std::string>);
static_assert(std::is_same_v<Alternative<AttrType::kDType>, DType>);
static_assert(std::is_same_v<Alternative<AttrType::kInts>, std::vector<int64_t>>);
static_assert(std::is_same_v<Alternative<AttrType::kDoubles>, std::vector<double>>);
static_assert(std::is_same_v<Alternative<AttrType::kStrings>, std::vector<std::string>>);
static_assert(std::is_same_v<Alternative<AttrType::kSpec>, Spec>);
static_assert(std::is_same_v<Alternative<AttrType::kFunction>, std::shared_ptr<const FunctionDef>>);
static_assert(std::is_same_v<Alternative<AttrType::kElement>, ConstantElement>);
static_assert(std::variant_size_v<Attr> == 11, "a new alternative needs a number above");

class Registry {
 public:
  Registry() {
    for (NodeKind& kind : BuiltInKinds()) Add(std::move(kind));
  }

  void Add(NodeKind kind) {
    PENSTOCK_CHECK(kind.infer != nullptr && kind.build != nullptr);
    MutexLock lock(mu_);
    std::string op = kind.op;
    kinds_.emplace(std::move(op), std::move(kind));  // rows never move
  }

  const NodeKind* Find(std::string_view op) const {
    MutexLock lock(mu_);
    auto it = kinds_.find(op);
    return it == kinds_.end() ? nullptr : &it->second;
  }

  std::vector<const NodeKind*> All() const {
    MutexLock lock(mu_);
    std::vector<const NodeKind*> all;
    for (const auto& [op, kind] : kinds_) all.push_back(&kind);
    return all;
  }

 private:
  mutable Mutex mu_;
  std::map<std::string, NodeKind, std::less<>> kinds_ GUARDED_BY(mu_);
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

}  // namespace

std::string_view Name(AttrType type) {
  static constexpr std::string_view kNames[] = {"int",   "double",   "bool",    "string",
                                                "dtype", "ints",     "doubles", "strings",
                                                "spec",  "function", "element"};
  return kNames[static_cast<size_t>(type)];
}

const NodeKind* FindNodeKind(std::string_view op) {
  return TheRegistry().Find(op);
}
std::vector<const NodeKind*> NodeKinds() {
  return TheRegistry().All();
}
void RegisterNodeKind(NodeKind kind) {
  TheRegistry().Add(std::move(kind));
}

}  // namespace penstock
