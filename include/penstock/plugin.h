// SPDX-License-Identifier: Apache-2.0
// Sources and transforms of your own, in addition to the maps of penstock/register.h, and the
// shared libraries that contain them (docs/plugins.md):
//
//   absl::Status Register() {
//     PENSTOCK_RETURN_IF_ERROR(ps::RegisterSource("numbers", {.describe = …, .open = …}));
//     return ps::RegisterMap("spread", {…});
//   }
//   PENSTOCK_EXPORT_PLUGIN(Register);
//
//   penstock worker --plugins libaugment.so …
//   ps::FromSource("numbers", {{"count", 1000}}).Map([](auto x) { return ps::Call("spread", x); })
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/base/config.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "penstock/dataset.h"
#include "penstock/element.h"
#include "penstock/register.h"
#include "penstock/spec.h"
#include "penstock/status.h"

#pragma GCC visibility push(default)
namespace penstock {

// The parameters of a source or transform, stored in the dataset.
using Param = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>,
                           std::vector<double>, std::vector<std::string>>;
using Params = std::map<std::string, Param>;

// Returns the parameter with this name; InvalidArgument if it is missing or has a different type.
template <class T>
absl::StatusOr<T> ParamOf(const Params& params, const std::string& name) {
  const auto found = params.find(name);
  if (found == params.end())
    return absl::InvalidArgumentError(absl::StrCat("the parameter '", name, "' is missing"));
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  return absl::InvalidArgumentError(
      absl::StrCat("the parameter '", name, "' has a different type"));
}

// --- Sources -------------------------------------------------------------------

struct SourceInfo {
  Spec spec;  // dense leaves
  Cardinality cardinality = kUnknown;
  int64_t splits = 1;  // numbered parts, distributed among workers; at least 1
};

// Reads splits one after another. Used by one thread at a time.
class SourceReader {
 public:
  virtual ~SourceReader() = default;
  // Moves to the first element of split `split`, 0 ≤ split < splits. May be called again, for any
  // split.
  virtual absl::Status Open(int64_t split) = 0;
  // Writes the next element's leaves to `out`; returns false at the end of the split. An error
  // takes the place of one element; the next call continues after that element.
  virtual absl::StatusOr<bool> Next(ElementOutputs& out) = 0;
  // Returns the position after the last element that was returned, in the open split. A position
  // contains counts and offsets, not elements.
  virtual absl::StatusOr<std::string> Save() = 0;
  // Moves to a saved position. Its split has been opened just before this call. DataLoss for bytes
  // that are not a position.
  virtual absl::Status Restore(std::string_view position) = 0;
};

struct RegisteredSource {
  int version = 1;  // enters the fingerprint; raise it when elements change
  // Called where the dataset is built. Its error becomes the dataset's.
  std::function<absl::StatusOr<SourceInfo>(const Params&)> describe;
  // Called where the dataset is read; any thread.
  std::function<absl::StatusOr<std::unique_ptr<SourceReader>>(const Params&)> open;
  bool deterministic = true;  // a split gives the same elements each time
};

// --- Transforms ------------------------------------------------------------------

struct TransformInfo {
  Spec spec;  // dense leaves
  Cardinality cardinality = kUnknown;
};

class TransformInput {
 public:
  virtual ~TransformInput() = default;
  // Returns the next element of the input, valid until the next call; nullptr at the end.
  virtual absl::StatusOr<const Element*> Next() = 0;
};

// Makes elements from the elements of the input. Used by one thread at a time.
class Transform {
 public:
  virtual ~Transform() = default;
  // Reads as many elements of `input` as it needs and writes the next element to `out`; returns
  // false at the end. Errors are the same as in SourceReader::Next().
  virtual absl::StatusOr<bool> Next(TransformInput& input, ElementOutputs& out) = 0;
  // Returns the state that the transform carries from one element to the next, or an empty string.
  // The input's own position is saved with it.
  virtual absl::StatusOr<std::string> Save() = 0;
  virtual absl::Status Restore(std::string_view state) = 0;
};

struct RegisteredTransform {
  int version = 1;
  std::function<absl::StatusOr<TransformInfo>(const Params&, const Spec& input,
                                              Cardinality input_cardinality)>
      describe;
  std::function<absl::StatusOr<std::unique_ptr<Transform>>(const Params&, const Spec& input)> open;
  bool deterministic = true;  // equal inputs give equal elements
};

// AlreadyExists if a different version is registered under the name.
absl::Status RegisterSource(std::string name, RegisteredSource source);
absl::Status RegisterTransform(std::string name, RegisteredTransform transform);
std::vector<std::string> RegisteredSources();
std::vector<std::string> RegisteredTransforms();

// Return a dataset of the source or transform that this program registered under the name. If there
// is none, the dataset's status is NotFound.
Dataset FromSource(std::string_view source, Params params = {});
Dataset ApplyTransform(const Dataset& input, std::string_view transform, Params params = {});

// --- Shared libraries ------------------------------------------------------------

// Increases whenever a class that plug-ins use changes in a way that its size does not show: the
// order or number of its virtual methods, or their meaning.
inline constexpr int kPluginInterface = 1;

// Returns a description of the interface as the compiler of the including file sees it. Hidden, so
// that a library calls its own copy of this function, not the copy of the program that loads it.
__attribute__((visibility("hidden"))) inline std::string PluginStamp() {
  return absl::StrCat("penstock plugin interface ", kPluginInterface, ", Abseil ",
                      ABSL_LTS_RELEASE_VERSION, ", C++ ABI ", __GXX_ABI_VERSION, "/",
                      _GLIBCXX_USE_CXX11_ABI, ", sizes ", sizeof(RegisteredMap), " ",
                      sizeof(RegisteredSource), " ", sizeof(RegisteredTransform), " ",
                      sizeof(SourceInfo), " ", sizeof(Param), " ", sizeof(Element), " ",
                      sizeof(Tensor), " ", sizeof(TensorSpec));
}

// Opens the library, unless it is open, and calls its registering function. NotFound if the library
// cannot be opened. FailedPrecondition if it is not a plug-in, or if its stamp differs from this
// program's (the message has both stamps). Otherwise returns the function's status. The library
// stays open and runs with all rights of this process, so load only libraries that you would link.
// Any thread may call this.
absl::Status LoadPlugin(const std::string& path);

}  // namespace penstock
#pragma GCC visibility pop

// Use once in a library. `fn` is an absl::Status() that registers the library's contents.
#define PENSTOCK_EXPORT_PLUGIN(fn)                                                        \
  extern "C" __attribute__((visibility("default"))) const char* penstock_plugin_stamp() { \
    static const std::string stamp = ::penstock::PluginStamp();                           \
    return stamp.c_str();                                                                 \
  }                                                                                       \
  extern "C" __attribute__((visibility("default"))) void penstock_register_plugin(        \
      absl::Status* outcome) {                                                            \
    *outcome = fn();                                                                      \
  }                                                                                       \
  static_assert(true, "takes the semicolon")
