// Does this program's engine publish KV events, and where?
#pragma once

#include "diagnose/manifest/engine_settings.h"

namespace fathom {

PublisherSettings PublisherSettingsOf(const Program& program);

// Of "0.9.1" against 0.11.1; nothing where the version is not known.
std::optional<bool> IsOlder(std::string_view version, std::string_view than);

}  // namespace fathom
