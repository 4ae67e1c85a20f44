// The timeline viewer: recorded timelines, two at a time at the same scale. timelines_data.js holds them, lanes.js draws.
"use strict";

(() => {
  const byId = id => document.getElementById(id);
  const charts = byId("timelines-charts");
  const panels = ["upper", "lower"].map(name => {
    const said = byId(`${name}-said`), box = byId(`${name}-chart`);
    const say = words => { said.textContent = words || "Point at a box to see its times."; };
    say("");
    return { select: byId(`${name}-select`), facts: byId(`${name}-facts`), box, chart: lanesChart(box, say) };
  });
  let width = 0;

  /** A timeline of the data as lanes; spans there are [lane, name, category, begin, length]. */
  function lanesOf(timeline) {
    timeline.drawn ??= timeline.lanes.map((lane, index) => ({
      ...lane, spans: timeline.spans.filter(span => span[0] === index).map(([, name, category, begin, length]) => ({
        begin, end: begin + length, role: category, label: timeline.names[name].replace(/^wait /, ""),
        words: `${lane.name}: ${timeline.names[name]}, ${begin.toFixed(2)} to ${(begin + length).toFixed(2)} ${timeline.unit} ` +
               `(${length.toFixed(2)} long)` })) }));
    return timeline.drawn;
  }

  const shown = panel => recordedTimelines[panel.select.value];

  function draw() {
    if (width < 50) return;
    const timelines = panels.map(shown);
    const together = timelines[0].unit === timelines[1].unit;
    const longest = longestOf(timelines);
    panels.forEach((panel, i) => {
      const whole = d3.scaleLinear([0, together ? longest : timelines[i].end], [EDGE, width - EDGE]);
      panel.chart.draw(lanesOf(timelines[i]), d3.zoomTransform(charts).rescaleX(whole),
                       { unit: timelines[i].unit, summary: `Timeline of ${timelines[i].title}` });
    });
    byId("timelines-scale").textContent = together
      ? "Both are drawn at the same scale."
      : "One clock counts nanoseconds, the other a model's cycles: each timeline has its own scale.";
  }

  const zoom = d3.zoom().scaleExtent([1, 400]).on("zoom", draw)
    // A wheel alone scrolls the page.
    .filter(function (event) {
      const { type, ctrlKey, metaKey, button } = event || d3.event;
      return type === "wheel" ? ctrlKey || metaKey : !button;
    });
  const view = d3.select(charts);
  const steps = {
    "+": () => view.call(zoom.scaleBy, 2),
    "-": () => view.call(zoom.scaleBy, 0.5),
    "0": () => view.call(zoom.transform, d3.zoomIdentity),
    ArrowLeft: () => view.call(zoom.translateBy, width / 6 / d3.zoomTransform(charts).k, 0),
    ArrowRight: () => view.call(zoom.translateBy, -width / 6 / d3.zoomTransform(charts).k, 0),
  };
  for (const button of document.querySelectorAll("button[data-step]"))
    button.addEventListener("click", steps[button.dataset.step]);
  charts.addEventListener("keydown", event => {
    const step = steps[event.key === "=" ? "+" : event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step();
  });

  const longestOf = timelines => Math.max(...timelines.map(timeline => timeline.end));

  /** From the beginning of one product of the upper timeline to that of the fourth behind it: so one can read the boxes. */
  function showFourSteps() {
    const { spans } = shown(panels[0]), lane = spans.find(span => span[2] === "compute")?.[0];
    const begins = spans.filter(span => span[0] === lane && span[2] === "compute").map(span => span[3]).sort((a, b) => a - b);
    if (begins.length < 6) return;
    const timelines = panels.map(shown), [from, to] = [begins[1], begins[5]];
    const end = timelines[0].unit === timelines[1].unit ? longestOf(timelines) : timelines[0].end;
    const nearer = Math.max(1, Math.min(400, end / (to - from)));
    const left = d3.scaleLinear([0, end], [EDGE, width - EDGE])(from);
    view.call(zoom.transform, d3.zoomIdentity.translate(EDGE - nearer * left, 0).scale(nearer));
  }

  function choose() {
    for (const panel of panels) panel.facts.innerHTML = shown(panel).facts;
    steps["0"]();
    draw();
  }

  for (const panel of panels)
    panel.select.addEventListener("change", () => {
      history.replaceState(null, "", "?show=" + panels.map(each => each.select.value).join(","));
      choose();
    });
  view.call(zoom).on("dblclick.zoom", null).style("touch-action", "pan-y");
  (new URLSearchParams(location.search).get("show") || "").split(",").forEach((name, i) => {
    if (panels[i] && recordedTimelines[name]) panels[i].select.value = name;
  });
  choose();
  onWidth(charts, now => {
    const first = width < 50 && now >= 50;
    width = now;
    zoom.extent([[0, 0], [width, 1]]).translateExtent([[0, 0], [width, 1]]);
    if (first) showFourSteps();
    draw();
  });
})();
