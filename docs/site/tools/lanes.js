// Draws lanes of spans over time, for the pipeline bench and the timeline viewer. Needs D3.
"use strict";

/** Gives every span a row so that none covers another. @returns how many rows that takes */
function packed(spans) {
  const ends = [];
  for (const span of spans.sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    // Recorded times are rounded, so neighbours may overlap by their last digit.
    let row = ends.findIndex(end => end <= span.begin + 2e-4);
    if (row < 0) row = ends.length;
    ends[row] = span.end;
    span.row = row;
  }
  return Math.max(1, ends.length);
}

/** Like 1,234.5: as many digits as matter beside `whole`. */
function timeText(value, whole) {
  const digits = whole >= 1000 ? 0 : whole >= 100 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

const EDGE = 6, NAME = 17, AXIS = 34, BAND = 8; // pixels

/**
 * A chart in `box`. `lanes` are [{name, note, spans: [{begin, end, role, label, words}]}]; `said` gets a span's words when
 * it is pointed at, "" when none is.
 */
function lanesChart(box, said) {
  const svg = d3.select(box).append("svg").attr("class", "lanes");
  const marks = svg.append("g"), axis = svg.append("g").attr("class", "axis");
  const unitLabel = svg.append("text").attr("class", "unit").attr("text-anchor", "end");

  /** `scale` maps times to pixels of the chart's width. Spans outside of it are not drawn. */
  function draw(lanes, scale, { unit, rowHeight = 20, summary }) {
    const width = scale.range()[1] + EDGE, [from, to] = scale.domain();
    let top = 0;
    for (const lane of lanes) {
      lane.rows ??= packed(lane.spans);
      lane.top = top;
      top += NAME + lane.rows * rowHeight + BAND;
    }
    svg.attr("width", width).attr("height", top + AXIS).attr("role", "img").attr("aria-label", summary);
    const groups = marks.selectAll("g.lane").data(lanes).join(enter => {
      const group = enter.append("g").attr("class", "lane");
      group.append("text");
      return group;
    }).attr("transform", lane => `translate(0,${lane.top})`);
    groups.select("text").attr("x", EDGE).attr("y", NAME - 5).text(lane => lane.name + (lane.note ? ` · ${lane.note}` : ""));

    const left = span => Math.max(scale(span.begin), EDGE - 1);
    const right = span => Math.min(scale(span.end), width);
    const shown = lane => lane.spans.filter(span => span.end >= from && span.begin <= to);
    const y = span => NAME + span.row * rowHeight;
    groups.selectAll("rect").data(shown).join("rect")
      .attr("class", span => span.role).attr("x", left).attr("y", y).attr("height", rowHeight - 2)
      .attr("width", span => Math.max(right(span) - left(span) - 0.5, 0.5))
      .on("pointerenter", function () { said(d3.select(this).datum().words); })
      .on("pointerleave", () => said(""));
    const fits = span => span.label && right(span) - left(span) > 7 * span.label.length + 4;
    groups.selectAll("text.in-span").data(lane => shown(lane).filter(fits)).join("text")
      .attr("class", span => `in-span ${span.role}`)
      .attr("x", span => (left(span) + right(span)) / 2).attr("y", span => y(span) + rowHeight / 2 + 3)
      .attr("text-anchor", "middle").text(span => span.label);

    axis.attr("transform", `translate(0,${top})`).call(d3.axisBottom(scale).ticks(Math.max(2, width / 110)));
    unitLabel.attr("x", width - EDGE).attr("y", top + AXIS - 4).text(unit);
  }
  return { draw };
}

/** Calls `redraw` with the width of `box`, now and whenever it changes. */
function onWidth(box, redraw) {
  new ResizeObserver(entries => redraw(Math.floor(entries[0].contentRect.width))).observe(box);
}
