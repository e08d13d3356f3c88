// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/status_server.h"

#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "control/observe/html.h"
#include "control/observe/metrics.h"
#include "control/observe/page_server.h"

namespace penstock::client {

void StartStatusServer(int port, const std::string& token) {
  if (port < 0) return;
  static std::once_flag once;
  std::call_once(once, [&] {
    absl::StatusOr<std::unique_ptr<PageServer>> server =
        PageServer::Start("localhost", port,
                          {{"/", [] { return HtmlPage("Penstock trainer", HtmlOfMetrics()); }},
                           {"/metrics", [] { return ProcessMetrics().Render(); }}},
                          token);
    if (!server.ok()) {
      StderrEventLog()->Write({"no_pages", {{"reason", std::string(server.status().message())}}});
      return;
    }
    StderrEventLog()->Write(
        {"pages", {{"at", absl::StrCat("http://localhost:", (*server)->port(), "/")}}});
    static PageServer* const kept = server->release();  // lives as long as the process
    (void)kept;
  });
}

}  // namespace penstock::client
