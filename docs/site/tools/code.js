// The code of a lesson in one file: folds all, unfolds all, and opens what hides the line that the address names.
"use strict";

(() => {
  const folds = [...document.querySelectorAll(".lesson-code details")];
  for (const button of document.querySelectorAll("button[data-fold]"))
    button.addEventListener("click", () => { for (const fold of folds) fold.open = button.dataset.fold === "open"; });

  function reveal() {
    const line = document.getElementById(location.hash.slice(1));
    for (let fold = line?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    line?.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();
})();
