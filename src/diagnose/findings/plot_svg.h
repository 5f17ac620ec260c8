// How is a plot drawn?
//
// As one <svg> element for an html page, whose style sheet gives the colours: series are of the
// classes that SeriesClass() names, text and grid are "axis" and "grid". Bars lie, so that their
// names can be read. Values that no plot can show (not finite, absurdly large) are left out; lines
// are broken there. A plot without values is drawn empty, and says so.
//
// Memory  At most kMaxBars bars and a few hundred points of each line are drawn.
#pragma once

#include <cstddef>
#include <string>

#include "diagnose/findings/report.h"

namespace fathom {

constexpr size_t kMaxBars = 48;

std::string PlotSvg(const Plot& plot);

// "good", "bad", ...; of series without a tone "s1", "s2", ... in turn. Series of one tone are told
// apart by a second class.
std::string SeriesClass(const Plot& plot, size_t series);

}  // namespace fathom
