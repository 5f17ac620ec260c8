// Where does the router listen, and who may use the admin routes there?
//
// Refuses to serve them without a key to other machines, unless the operator says so.
#pragma once

#include <optional>

#include "base/result.h"
#include "config/settings.h"
#include "io/net/address.h"
#include "router/gateway/admin_door.h"

namespace fathom {

struct ListenPlan {
  Address main;
  std::optional<Address> admin;  // nullopt: the main address has the admin routes
  AdminRules main_rules;
  AdminRules admin_rules;

  // Which keys are set.
  struct Keys {
    bool clients = false;
    bool operators = false;
  };

  // Resolves names, which blocks: only before the loops run.
  static Result<ListenPlan> Of(const Settings& settings, const Keys& keys);

  // The address that has the admin routes.
  const Address& pages() const { return admin ? *admin : main; }
  const AdminRules& page_rules() const { return admin ? admin_rules : main_rules; }
};

}  // namespace fathom
