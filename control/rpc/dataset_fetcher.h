// SPDX-License-Identifier: Apache-2.0
// Fetches datasets from a dispatcher. A large one comes in pieces, so that neither process holds
// many large messages at once. It consists of parts, its definition and its summary, which are
// known by their SHA-256: a part that is here already is not fetched. docs/protocol.md, "Datasets".
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "control/proto/messages_proto.h"
#include "control/protocol/requests.h"
#include "control/sync/mutex.h"

namespace penstock::control {

// A dataset of at most this size is one answer; any other comes in pieces of this size.
inline constexpr size_t kDatasetPieceBytes = size_t{1} << 20;

// Returns the SHA-256 of `content`, as 32 bytes.
std::string ContentDigest(std::string_view content);

// Any thread may call any method. The newest parts that were fetched are kept.
class DatasetFetcher {
 public:
  // Calls the dispatcher's GetDataset, and waits for its answer.
  using Ask = absl::FunctionRef<absl::StatusOr<wire::GetDatasetAnswer>(
      const wire::DatasetRequest& request)>;

  explicit DatasetFetcher(size_t kept_bytes = size_t{64} << 20) : most_kept_bytes_(kept_bytes) {}

  // Returns the dataset with this id and edition. Returns the errors of `ask`. DataLoss, which
  // names the dataset and the part, if a part does not have the content that its digest names.
  absl::StatusOr<GetDatasetAnswer> Fetch(std::string_view id, uint64_t edition, Ask ask);

 private:
  struct Kept {
    std::string sha256;
    std::shared_ptr<const std::string> content;
  };
  using Content = std::shared_ptr<const std::string>;

  absl::StatusOr<Content> FetchPart(wire::DatasetRequest request, const wire::DatasetPart& part,
                                    Ask ask);
  Content Find(const std::string& sha256);
  void Keep(const std::string& sha256, Content content);

  const size_t most_kept_bytes_;
  Mutex mu_;
  std::list<Kept> kept_ GUARDED_BY(mu_);  // the last used one first
};

}  // namespace penstock::control
