// The cost model of a pipeline, for the pipeline bench: what common/model/model.cpp computes, and nothing about pages.
// docs/tests/test_bench_model.py compares it with the program `predict`.
"use strict";

/* A pipeline is {load, compute, store, interval, slots, late}. `interval` is the time from the start of a copy to that of
   the next; null: the next one starts when the one before has landed. Both rings have `slots` slots. `late`: a slot is
   released when, besides, the next tile has landed; it needs two slots. Two roles are three with a store of 0. */
const costModel = (() => {
  const interval = p => p.interval ?? p.load;
  const late = p => p.late && p.slots > 1;
  const isSimple = p => p.interval === null && !late(p);

  /** When each tile is loaded, computed and stored: [{load: [begin, end], compute, store}]. */
  function schedule(p, tiles) {
    const times = [];
    for (let i = 0; i < tiles; ++i) {
      let begin = i > 0 ? times[i - 1].load[0] + interval(p) : 0;
      if (i >= p.slots) begin = Math.max(begin, times[i - p.slots].compute[1]);
      if (i >= p.slots && late(p)) begin = Math.max(begin, times[i - p.slots + 1].load[1]);
      const load = [begin, begin + p.load];

      begin = Math.max(load[1], i > 0 ? times[i - 1].compute[1] : 0);
      if (i >= p.slots) begin = Math.max(begin, times[i - p.slots].store[1]);
      const compute = [begin, begin + p.compute];

      begin = Math.max(compute[1], i > 0 ? times[i - 1].store[1] : 0);
      times.push({ load, compute, store: [begin, begin + p.store] });
    }
    return times;
  }

  const total = (p, tiles) => (tiles > 0 ? schedule(p, tiles)[tiles - 1].store[1] : 0);

  /** What each further tile adds is the largest of these: [[how it is written, its value]]. Null: no form is known. */
  function terms(p) {
    const { load: l, compute: c, store: s, slots } = p;
    if (isSimple(p) && slots === 1) return s > 0 ? [["l + c", l + c], ["c + s", c + s]] : [["l + c", l + c]];
    if (isSimple(p)) return s > 0 ? [["l", l], ["c", c], ["s", s]] : [["l", l], ["c", c]];
    if (s > 0) return null;
    return [["c", c], [p.interval === null ? "l" : "o", interval(p)],
            late(p) ? ["l / (S − 1)", l / (slots - 1)] : ["(l + c) / S", (l + c) / slots]];
  }

  function perTile(p) {
    const known = terms(p);
    return known && Math.max(...known.map(term => term[1]));
  }

  /** total() without a loop over tiles; null where no form is known. */
  function closedForm(p, tiles) {
    if (terms(p) === null) return null;
    if (tiles === 0) return 0;
    const alone = p.load + p.compute + p.store, further = tiles - 1;
    if (isSimple(p)) return alone + further * perTile(p);
    // A late release is waited for from the second tile on, an early one from the first.
    const busiest = Math.max(interval(p), p.compute);
    const beforeLaps = late(p) ? Math.min(further, 1) : 0, inLaps = further - beforeLaps;
    const lap = late(p) ? p.slots - 1 : p.slots, timeOfLap = late(p) ? p.load : p.load + p.compute;
    const waiting = Math.floor(inLaps / lap) * timeOfLap + (inLaps % lap) * busiest;
    return alone + beforeLaps * busiest + Math.max(inLaps * busiest, waiting);
  }

  /** The command that computes the same. */
  function command(p, tiles) {
    return `build/bin/predict --load ${p.load} --compute ${p.compute}` + (p.store > 0 ? ` --store ${p.store}` : "") +
      (p.interval === null ? "" : ` --load-interval ${p.interval}`) + (late(p) ? " --late-release" : "") +
      ` --tiles ${tiles} --slots ${p.slots}`;
  }

  return { schedule, total, terms, perTile, closedForm, command };
})();
