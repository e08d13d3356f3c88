// SPDX-License-Identifier: Apache-2.0
// Values and specs of several replicas.
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/replica/parallel_for.h"
#include "dataplane/replica/traced_function.h"
#include "include/status_macros.h"
#include "penstock/distributed_dataset.h"

namespace penstock {
namespace {

// Returns the nest of `spec` as text, with leaf(i) at its leaves.
std::string NestText(const Spec& spec, const std::function<std::string(size_t)>& leaf,
                     size_t& next) {
  if (spec.kind() == Spec::Kind::kLeaf) return leaf(next++);
  const bool dict = spec.kind() == Spec::Kind::kDict;
  std::string text = dict ? "{" : "(";
  for (size_t i = 0; i < spec.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", dict ? spec.key(i) : "", dict ? ": " : "",
                    NestText(spec.member(i), leaf, next));
  }
  return text + (dict ? "}" : ")");
}

std::string NestText(const Spec& spec, const std::function<std::string(size_t)>& leaf) {
  size_t next = 0;
  return NestText(spec, leaf, next);
}

absl::Status OtherReplicas(size_t here, size_t there) {
  return absl::InvalidArgumentError(absl::StrCat(
      "one has ", here, " replica(s) and the other ", there,
      "; both must come from groups with the same number of replicas in this process"));
}

}  // namespace

DistributedValues::DistributedValues(std::vector<Element> elements,
                                     std::vector<std::vector<float>> weights)
    : elements_(std::move(elements)), weights_(std::move(weights)) {}

DistributedValues::DistributedValues(std::vector<Element> elements,
                                     std::vector<DeviceElement> on_devices,
                                     std::vector<std::vector<float>> weights)
    : elements_(std::move(elements)),
      on_devices_(std::move(on_devices)),
      weights_(std::move(weights)) {}

absl::Status DistributedValues::CheckOnDevice(bool expected, std::string_view what) const {
  for (size_t i = 0; i < size(); ++i) {
    if (this->is_on_device(i) == expected) continue;
    if (expected) {
      return absl::FailedPreconditionError(absl::StrCat("the values of replica ", i,
                                                        " are in host memory; ", std::string(what),
                                                        " must take a const Element&"));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the values of replica ", i, " are on GPU:", on_devices_[i].device(), ", but ",
        std::string(what), " needs them in host memory; distribute with fetch_to_device = false, ",
        "or give Run a function that takes a const DeviceElement&"));
  }
  return absl::OkStatus();
}

PerReplica<Tensor> DistributedValues::tensor(size_t leaf) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < size(); ++i)
    tensors.push_back(is_on_device(i) ? on_devices_[i].tensor(leaf) : elements_[i].tensor(leaf));
  return PerReplica<Tensor>(std::move(tensors));
}

PerReplica<Tensor> DistributedValues::operator[](std::string_view key) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < size(); ++i)
    tensors.push_back(is_on_device(i) ? on_devices_[i][key] : elements_[i][key]);
  return PerReplica<Tensor>(std::move(tensors));
}

absl::Span<const float> DistributedValues::weights(size_t replica) const {
  if (weights_.empty()) return {};
  return weights_[replica];
}

PerReplicaSpec DistributedValues::spec() const {
  std::vector<Spec> specs;
  for (size_t i = 0; i < size(); ++i)
    specs.push_back(is_on_device(i) ? on_devices_[i].spec() : elements_[i].spec());
  return PerReplicaSpec(std::move(specs));
}

std::string DistributedValues::LeafText(size_t replica, size_t leaf) const {
  if (!is_on_device(replica)) return elements_[replica].tensor(leaf).ToString();
  const Tensor tensor = on_devices_[replica].tensor(leaf);
  if (!tensor.present()) return "absent";
  return absl::StrCat(std::string(Name(tensor.dtype())), " [", absl::StrJoin(tensor.dims(), " "),
                      "] on GPU:", on_devices_[replica].device());
}

std::string DistributedValues::ToString() const {
  if (size() == 0) return "()";
  if (size() == 1 && !is_on_device(0)) return elements_[0].ToString();
  return NestText(is_on_device(0) ? on_devices_[0].spec() : elements_[0].spec(),
                  [this](size_t leaf) {
                    std::vector<std::string> texts;
                    for (size_t i = 0; i < size(); ++i) texts.push_back(LeafText(i, leaf));
                    return PerReplica<std::string>(std::move(texts)).ToString();
                  });
}

absl::Status PerReplicaSpec::Admits(const PerReplicaSpec& other) const {
  if (size() != other.size()) return OtherReplicas(size(), other.size());
  for (size_t i = 0; i < size(); ++i)
    RETURN_IF_ERROR(Annotate(specs_[i].Admits(other.specs_[i]), "in replica ", i));
  return absl::OkStatus();
}

absl::Status PerReplicaSpec::Admits(const DistributedValues& values) const {
  RETURN_IF_ERROR(Admits(values.spec()));
  for (size_t i = 0; i < size(); ++i) {
    for (size_t leaf = 0; leaf < specs_[i].leaves().size(); ++leaf) {
      const TensorSpec& spec = specs_[i].leaves()[leaf];
      const Tensor tensor =
          values.is_on_device(i) ? values.on_device(i).tensor(leaf) : values[i].tensor(leaf);
      if (spec.kind != TensorSpec::Kind::kDense || !tensor.present()) continue;
      if (spec.shape.Admits(tensor.dims())) continue;
      return absl::InvalidArgumentError(absl::StrCat("replica ", i, " has ", tensor.ToString(),
                                                     " where ", spec.ToString(), " is expected"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PerReplicaSpec> PerReplicaSpec::MostGeneral(const PerReplicaSpec& other) const {
  if (size() != other.size()) return OtherReplicas(size(), other.size());
  std::vector<Spec> specs;
  for (size_t i = 0; i < size(); ++i) {
    const absl::Span<const TensorSpec> theirs = other.specs_[i].leaves();
    std::vector<TensorSpec> leaves(specs_[i].leaves().begin(), specs_[i].leaves().end());
    for (size_t leaf = 0; leaf < leaves.size() && leaf < theirs.size(); ++leaf)
      leaves[leaf].shape = leaves[leaf].shape.MostGeneral(theirs[leaf].shape);
    specs.push_back(specs_[i].WithLeaves(leaves));
    RETURN_IF_ERROR(Annotate(specs.back().Admits(other.specs_[i]), "in replica ", i));
  }
  return PerReplicaSpec(std::move(specs));
}

std::string PerReplicaSpec::ToString() const {
  if (size() == 0) return "()";
  if (size() == 1) return specs_[0].ToString();
  return NestText(specs_[0], [this](size_t leaf) {
    std::string text = "PerReplicaSpec(";
    for (size_t i = 0; i < size(); ++i)
      absl::StrAppend(&text, i == 0 ? "" : ", ", specs_[i].leaves()[leaf].ToString());
    return text + ")";
  });
}

absl::StatusOr<DistributedValues> ReplicaGroup::RunTraced(const MapFunction& fn,
                                                          const DistributedValues& values) const {
  RETURN_IF_ERROR(CheckLocal(values.size()));
  RETURN_IF_ERROR(values.CheckOnDevice(false, "RunTraced"));
  std::vector<Element> results(values.size());
  RETURN_IF_ERROR(OnEachReplica([&](int replica) -> absl::Status {
    const Element& element = values[static_cast<size_t>(replica)];
    ASSIGN_OR_RETURN(const replica::TracedFunction traced,
                     replica::TracedFunction::Of(fn, element.spec()));
    ASSIGN_OR_RETURN(results[static_cast<size_t>(replica)],
                     traced(element, {.element = static_cast<uint64_t>(first_replica_ + replica)}));
    return absl::OkStatus();
  }));
  return DistributedValues(std::move(results), values.weights_);
}

}  // namespace penstock
