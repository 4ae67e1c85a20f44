// The pipeline bench: sliders for the times of a pipeline's roles; its timeline and the closed forms' answer beside it.
// The arithmetic is in model.js, the drawing in lanes.js; the presets are in the page, read from recorded files.
"use strict";

(() => {
  const byId = id => document.getElementById(id);
  const presets = JSON.parse(byId("bench-presets").textContent);
  const sliders = ["load", "interval", "compute", "store", "slots", "tiles"];
  const MOST_SLOTS = 8;
  let unit = "ns", width = 0;

  const say = words => { byId("bench-said").textContent = words || "Point at a box to see its times."; };
  const chart = lanesChart(byId("bench-chart"), say);

  function pipeline() {
    const value = name => Number(byId(`bench-${name}`).value);
    return { load: value("load"), compute: value("compute"), slots: value("slots"),
             store: byId("bench-roles").value === "3" ? value("store") : 0,
             interval: byId("bench-together").checked ? value("interval") : null,
             late: byId("bench-late").checked };
  }

  function take(preset) {
    unit = preset.unit;
    byId("bench-roles").value = preset.store > 0 ? "3" : "2";
    byId("bench-together").checked = preset.interval !== null;
    byId("bench-late").checked = preset.late;
    for (const name of ["load", "compute", "store", "slots"]) byId(`bench-${name}`).value = preset[name];
    byId("bench-interval").value = preset.interval ?? preset.load;
    byId("bench-source").innerHTML = preset.source;
  }

  /** Two lanes, or three. Copies that are under way together have rows of their own. */
  function lanesOf(p, times) {
    const span = (role, [begin, end], i) => ({
      begin, end, role, label: String(i),
      words: `${role}, tile ${i}: from ${timeText(begin, end)} to ${timeText(end, end)} ${unit}` });
    return (p.store > 0 ? ["load", "compute", "store"] : ["load", "compute"]).map(role => ({
      name: role, spans: times.map((time, i) => span(role, time[role], i)).filter(box => box.end > box.begin) }));
  }

  const max = (terms, show) => (terms.length > 1 ? `max(${terms.map(show).join(", ")})` : show(terms[0]));

  function answer(p, tiles, total) {
    const form = costModel.closedForm(p, tiles), terms = costModel.terms(p);
    byId("bench-total").textContent = `${timeText(total, total)} ${unit}`;
    byId("bench-command").textContent = costModel.command(p, tiles);
    const busy = total > 0 ? `${Math.round(100 * tiles * p.compute / total)} %` : "–";
    byId("bench-busy").textContent = busy;
    if (terms === null) {
      byId("bench-closed").textContent = "not known";
      byId("bench-per-tile").textContent =
        "No closed form is known for three roles whose copies overlap or whose slots are released late.";
      return;
    }
    byId("bench-closed").textContent = `${timeText(form, form)} ${unit}`;
    const most = costModel.perTile(p);
    if (most > 0) byId("bench-busy").textContent = `${busy}; of many more tiles ${Math.round(100 * p.compute / most)} %`;
    const number = ([, value]) => (value === most ? `<b>${timeText(value, most)}</b>` : timeText(value, most));
    byId("bench-per-tile").innerHTML = max(terms, ([name]) => name) +
      (terms.length > 1 ? ` = ${max(terms, number)}` : "") + ` = ${timeText(most, most)} ${unit}`;
  }

  function compareSlots(p) {
    const rows = [];
    for (let slots = 1; slots <= MOST_SLOTS; ++slots) rows.push([slots, costModel.perTile({ ...p, slots })]);
    const most = Math.max(...rows.map(row => row[1] ?? 0));
    const row = d3.select("#bench-by-slots").selectAll("div").data(rows).join(enter => {
      const made = enter.append("div");
      for (const name of ["slots", "bar", "time"]) made.append("span").attr("class", name);
      return made;
    }).classed("now", ([slots]) => slots === p.slots);
    row.select(".slots").text(([slots]) => `${slots} slot${slots > 1 ? "s" : ""}`);
    row.select(".bar").style("width", ([, time]) => `${most > 0 ? 100 * time / most : 0}%`);
    row.select(".time").text(([, time]) => (time === null ? "–" : timeText(time, most)));
  }

  function show() {
    const p = pipeline(), tiles = Number(byId("bench-tiles").value);
    byId("bench-store").disabled = byId("bench-roles").value === "2";
    byId("bench-interval").disabled = !byId("bench-together").checked;
    byId("bench-late").disabled = p.slots < 2;
    for (const name of sliders) {
      const input = byId(`bench-${name}`), of = ["slots", "tiles"].includes(name) ? "" : ` ${unit}`;
      byId(`bench-${name}-value`).textContent = timeText(Number(input.value), 1000) + of;
    }
    const times = costModel.schedule(p, tiles), total = costModel.total(p, tiles);
    answer(p, tiles, total);
    compareSlots(p);
    if (width < 50) return;
    const scale = d3.scaleLinear([0, Math.max(total, 1)], [EDGE, width - EDGE]);
    chart.draw(lanesOf(p, times), scale, { unit, rowHeight: 22,
      summary: `${tiles} tiles through ${p.slots} slots take ${timeText(total, total)} ${unit}` });
  }

  function choose() {
    const preset = presets[byId("bench-preset").value];
    if (preset) take(preset);
    show();
  }

  byId("bench-preset").addEventListener("change", choose);
  function own() {
    byId("bench-preset").value = "own";
    byId("bench-source").textContent = "";
    show();
  }
  byId("bench-roles").addEventListener("change", own);
  for (const input of document.querySelectorAll(".bench input:not(#bench-tiles)")) input.addEventListener("input", own);
  byId("bench-tiles").addEventListener("input", show);
  const begin = new URLSearchParams(location.search).get("begin");
  if (presets[begin]) byId("bench-preset").value = begin;
  say("");
  choose();
  onWidth(byId("bench-chart"), now => { width = now; show(); });
})();
