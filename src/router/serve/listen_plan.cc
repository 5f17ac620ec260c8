#include "router/serve/listen_plan.h"

#include "io/net/listen_address.h"

namespace fathom {
namespace {

Result<Address> AddressOf(const std::string& host, uint16_t port) {
  auto address = ListenAddress(host.empty() ? "0.0.0.0" : host, port);
  if (address) return *address;
  return Fail(Blame::kCaller, "cannot listen on '{}': {}", host, address.error().what);
}

Result<void> CheckPages(const ListenPlan& plan, bool operators, bool open) {
  if (plan.page_rules().loopback || operators || open) return {};
  return Fail(Blame::kCaller,
              "everyone who reaches {} could add and remove workers: set --admin-key or "
              "--admin-key-file, or serve the admin routes on loopback with --admin-listen "
              "127.0.0.1:8001, or allow it with --open-admin",
              plan.pages().ToString());
}

}  // namespace

Result<ListenPlan> ListenPlan::Of(const Settings& settings, const Keys& keys) {
  const bool open = settings.Flag("open-admin");
  ListenPlan plan;
  TRY(plan.main, AddressOf(settings.Text("host"), static_cast<uint16_t>(settings.Integer("port"))));
  plan.main_rules.loopback = plan.main.loopback();
  plan.main_rules.closed = keys.clients && !keys.operators && !open;
  if (const std::string& admin = settings.Text("admin-listen"); !admin.empty()) {
    TRY(const auto host_port, SplitHostPort(admin));
    TRY(plan.admin, AddressOf(host_port.first, host_port.second));
    plan.main_rules.elsewhere = true;
    plan.admin_rules.loopback = plan.admin->loopback();
  }
  TRY_VOID(CheckPages(plan, keys.operators, open));
  return plan;
}

}  // namespace fathom
