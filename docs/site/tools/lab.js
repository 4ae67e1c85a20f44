// The handshake lab: shows the rows of its tables that the reader asks for. Without this script its folds open by hand.
"use strict";

(() => {
  const byId = id => document.getElementById(id);
  const words = byId("lab-words"), lesson = byId("lab-lesson"), detector = byId("lab-detector");
  const groups = [...document.querySelectorAll("details.lab-group")];
  const noticed = new Map();  // of each mistake: who does, as the filter names them
  const rows = [];

  const cells = row => [...row.querySelectorAll("td")].map(cell => cell.textContent.trim());
  for (const group of groups) {
    const names = [...group.querySelectorAll("th")].map(name => name.textContent.trim()), device = group.dataset.device;
    for (const row of group.querySelectorAll("tr")) {
      const [mistake, ...others] = cells(row);
      if (mistake === undefined) continue;
      rows.push({ row, group, mistake, text: row.textContent.toLowerCase() });
      if (!device) continue;
      const by = others.map((cell, i) => (cell === "yes" || cell === "hang" ? `${device}: ${names[i + 1]}` : null)).filter(Boolean);
      if (!noticed.has(mistake)) noticed.set(mistake, new Set());
      for (const name of by.length ? by : [`${device}: nothing`]) noticed.get(mistake).add(name);
    }
  }
  for (const name of new Set(groups.map(group => group.dataset.lesson)))
    lesson.add(new Option(groups.find(group => group.dataset.lesson === name).querySelector("summary b").textContent, name));
  for (const name of [...new Set([...noticed.values()].flatMap(names => [...names]))].sort()) detector.add(new Option(name));

  function show() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean), shown = new Set();
    const asked = wanted.length > 0 || lesson.value !== "" || detector.value !== "";
    for (const { row, group, mistake, text } of rows) {
      row.hidden = (lesson.value !== "" && group.dataset.lesson !== lesson.value) || !wanted.every(word => text.includes(word)) ||
        (detector.value !== "" && !noticed.get(mistake)?.has(detector.value));
      if (!row.hidden) shown.add(mistake);
    }
    for (const group of groups) {
      group.hidden = rows.every(each => each.group !== group || each.row.hidden);
      group.open = asked && !group.hidden;
    }
    byId("lab-count").textContent = asked ? `${shown.size} of ${noticed.size} mistakes.` : `${noticed.size} mistakes, folded by lesson.`;
  }

  words.addEventListener("input", show);
  for (const choice of [lesson, detector]) choice.addEventListener("change", show);
  show();
})();
