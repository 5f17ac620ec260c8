// How does the html report look on a desk, on a telephone, at night and on paper?
#pragma once

#include <string_view>

namespace fathom {

constexpr std::string_view kHtmlStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #fafaf8; --sheet: #fff; --ink: #1d232a; --soft: #5c6670; --rule: #e4e6e8; --code: #f4f5f5;
  --error: #b3261e; --error-bg: #fcefed; --warning: #8a5a00; --warning-bg: #fdf4e1;
  --info: #1f5f99; --info-bg: #edf4fb; --good: #1b7a48;
  --add: #e9f6ec; --del: #fdeeec;
  --s1: #2d6aa6; --s2: #7fb0dc; --s3: #16837f; --s4: #8068b5; --s5: #c08a2d; --s6: #9aa4ae;
  --p-good: #3c9466; --p-doubtful: #dca23a; --p-bad: #c8503f; --p-faint: #c3cad1;
  --on-dark: #fff; --on-light: #1d232a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161a; --sheet: #191e24; --ink: #e4e8eb; --soft: #98a3ad; --rule: #2b323a;
      --code: #12161a;
    --error: #ff8a7e; --error-bg: #3a1d1b; --warning: #f0bd62; --warning-bg: #352913;
    --info: #8cc1f2; --info-bg: #172a3b; --good: #6fcf97;
    --add: #16301f; --del: #391f1d;
    --s1: #5c9bd8; --s2: #3a6490; --s3: #43b3ad; --s4: #a48fd6; --s5: #d9a650; --s6: #6d7883;
    --p-good: #53ad7e; --p-doubtful: #dca23a; --p-bad: #dd6a59; --p-faint: #4b555f;
    --on-dark: #0f1316; --on-light: #e4e8eb;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
h1, h2, h3, h4, p, ul, ol, dl, figure, pre, table { margin: 0; }
ul, ol { padding-left: 1.2em; }
li + li { margin-top: .3em; }
code, pre, .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono",
  monospace; }
code, .mono { font-size: .875em; }
.eyebrow { font-size: .8125rem; color: var(--soft); display: flex; flex-wrap: wrap;
  gap: .2rem 1.1rem; }
.eyebrow b { color: var(--ink); font-weight: 600; }
h1 { font-size: 1.8rem; line-height: 1.25; letter-spacing: -.015em; font-weight: 650;
  margin: .7rem 0 1.1rem; max-width: 46rem; }
nav { display: flex; flex-wrap: wrap; gap: .4rem 1.3rem; font-size: .875rem;
  border-block: 1px solid var(--rule); padding: .6rem 0; }
a { color: var(--info); text-decoration: none; }
a:hover { text-decoration: underline; }
h2 { font-size: 1.25rem; letter-spacing: -.01em; margin: 2.8rem 0 1rem; }
h3 { font-size: 1.0625rem; line-height: 1.35; }
h4 { font-size: .9375rem; margin: 1.6rem 0 .5rem; }
.badge { display: inline-block; font-size: .6875rem; font-weight: 700; letter-spacing: .06em;
  padding: .12rem .5rem; border-radius: 99px; vertical-align: .12em; }
.error .badge, .badge.error { color: var(--error); background: var(--error-bg); }
.warning .badge, .badge.warning { color: var(--warning); background: var(--warning-bg); }
.info .badge, .badge.info { color: var(--info); background: var(--info-bg); }
.badge.healthy { color: var(--good); background: var(--add); }
article { background: var(--sheet); border: 1px solid var(--rule);
  border-left: 4px solid var(--rule); border-radius: 6px; padding: 1.2rem 1.4rem 1.1rem;
  margin-top: 1rem; }
article.error { border-left-color: var(--error); }
article.warning { border-left-color: var(--p-doubtful); }
article.info { border-left-color: var(--info); }
article header { display: grid; grid-template-columns: auto 1fr; gap: 0 .8rem;
  align-items: baseline; }
.number { font-size: 1.0625rem; font-weight: 650; color: var(--soft);
  font-variant-numeric: tabular-nums; }
.subject { grid-column: 2; color: var(--soft); }
.message { font-size: 1.0625rem; margin-top: .8rem; }
.why { color: var(--soft); margin-top: .4rem; }
.label { font-size: .75rem; font-weight: 650; letter-spacing: .05em; text-transform: uppercase;
  color: var(--soft); margin: 1.1rem 0 .35rem; }
.evidence { font-size: .9375rem; }
.fix { border-top: 1px solid var(--rule); margin-top: 1.1rem; }
.fix > .label { margin-top: .8rem; }
.what { font-weight: 600; }
pre { background: var(--code); border: 1px solid var(--rule); border-radius: 5px;
  padding: .7rem .9rem; margin-top: .6rem; font-size: .8125rem; line-height: 1.5; overflow-x: auto;
  overflow-wrap: normal; }
pre span { display: block; min-height: 1.5em; }
pre .add { background: var(--add); } pre .del { background: var(--del); }
pre .at { color: var(--soft); }
details { margin-top: .6rem; }
summary { cursor: pointer; font-size: .875rem; color: var(--info); }
dl { display: grid; grid-template-columns: 4.2rem 1fr; gap: .25rem .6rem; font-size: .9375rem;
  margin-top: .7rem; }
dt { color: var(--soft); } dd { margin: 0; }
.more { font-size: .8125rem; color: var(--soft); margin-top: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; overflow-wrap: break-word; width: 100%; font-size: .9063rem;
  line-height: 1.4; }
th { text-align: left; font-weight: 600; font-size: .8125rem; color: var(--soft);
  border-bottom: 1px solid var(--soft); }
th, td { padding: .45rem 1.1rem .45rem 0; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
td { border-bottom: 1px solid var(--rule); }
.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.num:not(:last-child), td.num:not(:last-child) { padding-right: 1.8rem; }
td.good { color: var(--good); } td.doubtful { color: var(--warning); } td.bad { color: var(--error);
  font-weight: 600; } td.faint { color: var(--soft); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
  gap: 1rem; margin-top: 1.4rem; align-items: start; }
figure { background: var(--sheet); border: 1px solid var(--rule); border-radius: 6px;
  padding: 1rem 1.1rem; max-width: 34rem; }
.plot-title { font-weight: 600; font-size: .9375rem; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .15rem .9rem;
  font-size: .8125rem; color: var(--soft); margin: .25rem 0 .5rem; }
.legend li { margin: 0; }
.legend svg { width: .7rem; height: .7rem; display: inline-block; margin-right: .35rem;
  vertical-align: -.05rem; }
figcaption { font-size: .875rem; color: var(--soft); margin-top: .5rem; }
figure > svg { display: block; width: 100%; height: auto; margin-top: .4rem; }
svg text { font-size: 12px; font-variant-numeric: tabular-nums; }
svg .axis { fill: var(--soft); } svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .on { font-size: 11px; }
rect.s1, .dot.s1 { fill: var(--s1); } rect.s2, .dot.s2 { fill: var(--s2); } rect.s3,
  .dot.s3 { fill: var(--s3); }
rect.s4, .dot.s4 { fill: var(--s4); } rect.s5, .dot.s5 { fill: var(--s5); } rect.s6,
  .dot.s6 { fill: var(--s6); }
rect.good, .dot.good { fill: var(--p-good); } rect.doubtful,
  .dot.doubtful { fill: var(--p-doubtful); }
rect.bad, .dot.bad { fill: var(--p-bad); } rect.faint, .dot.faint { fill: var(--p-faint); }
rect.shade2 { fill-opacity: .62; } rect.shade1, rect.shade3 { fill-opacity: .38; }
rect { stroke: var(--sheet); stroke-width: 1; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
.line.s1 { stroke: var(--s1); } .line.s2 { stroke: var(--s2); stroke-dasharray: 7 4; }
.line.s3 { stroke: var(--s3); stroke-dasharray: 2 4; }
.line.s4 { stroke: var(--s4); stroke-dasharray: 9 3 2 3; } .line.s5 { stroke: var(--s5);
  stroke-dasharray: 5 5; } .line.s6 { stroke: var(--s6); }
.line.good { stroke: var(--p-good); } .line.doubtful { stroke: var(--p-doubtful); }
.line.bad { stroke: var(--p-bad); } .line.faint { stroke: var(--p-faint); }
.line.shade2 { stroke-dasharray: 7 4; } .line.shade1, .line.shade3 { stroke-dasharray: 2 4; }
text.on { fill: var(--on-dark); } text.on.faint, text.on.doubtful,
  text.on.s2 { fill: var(--on-light); }
.missing { border: 1px dashed var(--rule); border-radius: 6px; padding: .7rem 1rem;
  margin-top: 1.2rem; font-size: .9063rem; color: var(--soft); }
.missing b { font-weight: 600; }
.quiet { color: var(--soft); }
footer { margin-top: 3rem; border-top: 1px solid var(--rule); padding-top: 1rem;
  font-size: .8125rem; color: var(--soft); }
@media (max-width: 36rem) {
  main { padding: 1.4rem 1rem 3rem; }
  h1 { font-size: 1.4rem; }
  article { padding: 1rem; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .4rem; }
  th, td, th.num:not(:last-child), td.num:not(:last-child) { padding-right: .7rem; }
  figure { padding: .8rem; }
  svg text { font-size: 14px; } svg .on { font-size: 12px; }
}
@media print {
  :root { --page: #fff; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  article, figure, tr { break-inside: avoid; }
  h2, h3, h4 { break-after: avoid; }
  a { color: inherit; }
}
)css";

}  // namespace fathom
