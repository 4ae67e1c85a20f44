// The lab: shows one of the planted mistakes that the page lists. Without this script the page shows them all.
"use strict";

(() => {
  const lesson = document.getElementById("mistakes-lesson"), choice = document.getElementById("mistakes-choice");
  const sections = [...document.querySelectorAll("section.mistake")];

  function show(id) {
    const chosen = sections.find(section => section.id === id) || sections.find(section => section.querySelector("details.caught")) || sections[0];
    for (const section of sections) section.hidden = section !== chosen;
    lesson.value = chosen.dataset.lesson;
    const here = sections.filter(section => section.dataset.lesson === lesson.value);
    choice.replaceChildren(...here.map(section => new Option(section.dataset.title, section.id)));
    choice.value = chosen.id;
  }
  function go(id) {
    history.replaceState(null, "", `#${id}`);
    show(id);
  }
  function step(by) {
    const at = sections.findIndex(section => section.id === choice.value);
    go(sections[(at + by + sections.length) % sections.length].id);
  }

  lesson.addEventListener("change", () => go(sections.find(section => section.dataset.lesson === lesson.value).id));
  choice.addEventListener("change", () => go(choice.value));
  document.getElementById("mistakes-before").addEventListener("click", () => step(-1));
  document.getElementById("mistakes-next").addEventListener("click", () => step(1));
  addEventListener("hashchange", () => show(location.hash.slice(1)));
  show(location.hash.slice(1));
})();
