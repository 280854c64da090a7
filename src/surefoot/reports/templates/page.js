// The explorer. All it shows was computed by surefoot and stands in the page; here it is only drawn.
"use strict";
window.surefootExplore = (D) => {
  const KINDS = { f4: Float32Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };
  const unpack = (text, kind) => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new KINDS[kind](bytes.buffer);
  };
  const G = {};
  for (const [kind, names] of Object.entries({
    u4: ["state_ptr", "pair_ptr", "successor", "state", "action", "row"], f4: ["probability", "reward", "cost"],
    u1: ["safe_pairs", "safe_states", "fallbacks", "forbidden"] })) for (const name of names) G[name] = unpack(D[name], kind);
  const V = { ...D.view, x: unpack(D.view.x, "f4"), y: unpack(D.view.y, "f4"), panel: unpack(D.view.panel, "u1") };
  const lastCost = D.last_cost && unpack(D.last_cost, "f4");
  const plans = D.plans.map((plan) => {
    const out = { number: plan.number, episode: plan.episode, consistent: plan.consistent, purposes: plan.purposes, hope: plan.hope };
    for (const name of ["pairs", "states", "kind", "limit", "last_limit", "purpose"]) out[name] = unpack(plan[name], "u1");
    for (const name of ["edge", "nearest", "played"]) out[name] = unpack(plan[name], "u2");
    for (const name of ["upper", "lower"]) out[name] = unpack(plan[name], "f4");
    for (const name of ["last_upper", "last_lower"]) out[name] = plan[name] && unpack(plan[name], "f4");
    return out;
  });
  const m = D.limits.length, H = D.layers.length - 1, S = D.layers[H], NONE = 65535;
  const decisions = D.layers[H - 1]; // states before the last layer
  const KIND = { FALLBACK: 0, PROVED: 1, UNPROVED: 2, COST: 3, FUTURE: 4, INCONSISTENT: 5, FORBIDDEN: 7, INSIDE: 8, OUTSIDE: 9 };
  const CLASSES = D.truth ? ["certified", "truly safe, not yet certified", "truly unsafe", "allowed, but truly unsafe", "forbidden"] : ["certified", "not yet certified", "proved unsafe", "allowed, but proved unsafe", "forbidden"];
  const layerOf = new Uint16Array(S), stateOf = new Uint32Array(G.action.length);
  for (let h = 0; h < H; h++) layerOf.fill(h, D.layers[h], D.layers[h + 1]);
  for (let s = 0; s < decisions; s++) stateOf.fill(s, G.state_ptr[s], G.state_ptr[s + 1]);

  const $ = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "g", "rect", "path", "text", "circle", "polyline", "line"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children.filter((child) => child !== null));
    return node;
  };
  const nice = (value) => Number.isFinite(value) ? value.toFixed(4).replace("-", "−") : value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const stateName = (s) => D.states[G.state[s]]; // its label
  const stateTold = (s) => D.state_words[G.state[s]]; // with words, where the label is but a number
  const actionName = (p) => D.actions[G.action[p]];
  const count = (n) => n.toLocaleString("en");

  let now = plans.length - 1, layer = 0, chosenState = -1, chosenPair = -1;
  const plan = () => plans[now];
  const classOf = (certified, safe) => certified ? (safe ? 0 : 3) : safe ? 1 : 2;
  const pairClass = (p) => G.forbidden[stateOf[p]] && !plan().pairs[p] ? 4 : classOf(plan().pairs[p], G.safe_pairs[p]);
  const stateClass = (s) => G.forbidden[s] ? 4 : classOf(plan().states[s], G.safe_states[s]);

  // --- places ------------------------------------------------------------------------------------------
  const layers = V.kind === "layers";
  let most = 1;
  for (let s = 0; s < decisions; s++) most = Math.max(most, G.state_ptr[s + 1] - G.state_ptr[s]);
  const columns = Math.max(...V.x) + 1, rows = Math.max(...V.y) + 1;
  const many = layers ? S * most > 5000 : false;
  const perRow = Math.min(most, 5), dotRows = many ? 0 : Math.ceil(most / perRow);
  const fits = (name) => name.length <= 9; // into its square
  const named = D.states.some(fits) && !many;
  const room = ($("picture").clientWidth - 30) / columns / 1.35; // what fits without scrolling
  const cw = many ? 18 : Math.max(perRow * 12 + 8, named ? 40 : 0, layers ? Math.min(room, 90) : 0);
  const ch = many ? 12 : (named ? 15 : 3) + dotRows * 12 + 4;
  const gapX = layers ? Math.max(10, Math.min(cw * 0.35, ($("picture").clientWidth - 30) / columns - cw)) : 3, gapY = layers ? 6 : 3, left = 8, top = 24;
  const panelW = columns * (cw + gapX) + 18, across = Math.max(1, Math.min(V.panels.length, Math.floor($("picture").clientWidth / panelW)));
  const panelH = rows * (ch + gapY) + 34;
  const corner = (s) => {
    const panel = V.panel[s];
    return [left + (panel % across) * panelW + V.x[s] * (cw + gapX), top + Math.floor(panel / across) * panelH + V.y[s] * (ch + gapY)];
  };
  const dotAt = (p) => {
    const s = stateOf[p], n = p - G.state_ptr[s], [x, y] = corner(s);
    if (many) return [x + cw / 2, y + ch / 2];
    return [x + 10 + (n % perRow) * 12, y + (named ? 15 : 3) + 6 + Math.floor(n / perRow) * 12];
  };
  const places = layers ? [] : [...new Map(Array.from({ length: S }, (_, s) => [corner(s).join(), corner(s)])).values()];
  const SHAPES = [
    (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z`,
    (x, y) => `M${x} ${y - 4.5}l4.5 4.5l-4.5 4.5l-4.5 -4.5z`,
    (x, y) => `M${x - 3.6} ${y - 3.6}l7.2 7.2m0 -7.2l-7.2 7.2`,
    (x, y) => `M${x} ${y - 4.5}l4.6 8h-9.2z`,
    (x, y) => `M${x - 4} ${y}h8m-4 -4v8`,
  ];
  const mark = (kind) => make("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, make("path", { d: SHAPES[kind](7, 7), class: `dot c${kind}` }));

  // --- the picture -------------------------------------------------------------------------------------
  const width = left * 2 + across * panelW - 18 - gapX, height = top + Math.ceil(V.panels.length / across) * panelH - 24;
  const grown = layers ? 1 : Math.max(1, Math.min(1.7, ($("picture").clientWidth - 14) / width)); // a small map fills its frame
  const art = make("svg", { width: width * grown, height: height * grown, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "states and actions, by class" });
  const below = make("g"), cells = make("g"), above = make("g"), words = make("g"), dots = make("g");
  art.append(below, cells, above, words, dots);
  $("picture").append(art);
  const cellNode = new Map(), dotNode = new Map();

  function build() {
    below.replaceChildren(); cells.replaceChildren(); words.replaceChildren(); dots.replaceChildren(); cellNode.clear(); dotNode.clear();
    const first = layers ? 0 : D.layers[layer], end = layers ? S : D.layers[layer + 1];
    if (layers) for (let h = 0; h < H; h++) below.append(label(left + h * (cw + gapX) + cw / 2, 15, cw + gapX < 44 ? String(h) : `step ${h}`));
    else V.panels.forEach((name, n) => below.append(label(left + (n % across) * panelW + panelW / 2 - 9, 15 + Math.floor(n / across) * panelH, name || `step ${layer}`)));
    if (!layers) for (const [x, y] of places) below.append(make("rect", { x, y, width: cw, height: ch, rx: 3, class: "place" }));
    for (let s = first; s < end; s++) {
      const [x, y] = corner(s);
      const cell = make("rect", { x, y, width: cw, height: ch, rx: 3, "data-state": s });
      if (S <= 300) cell.setAttribute("tabindex", "0");
      cells.append(cell); cellNode.set(s, cell);
      if (named && fits(stateName(s))) words.append(make("text", { x: x + 5, y: y + 12 }, stateName(s)));
      if (many || s >= decisions) continue;
      for (let p = G.state_ptr[s]; p < G.state_ptr[s + 1]; p++) {
        const [dx, dy] = dotAt(p), dot = make("path", { "data-pair": p });
        const hit = make("rect", { x: dx - 6, y: dy - 6, width: 12, height: 12, class: "hit", "data-pair": p });
        dots.append(dot, hit); dotNode.set(p, dot);
      }
    }
    paint();
  }
  const label = (x, y, words) => make("text", { x, y, class: "axis", "text-anchor": "middle" }, words);

  function paint() {
    for (const [s, cell] of cellNode) cell.setAttribute("class", `cell c${stateClass(s)}${s === chosenState ? " chosen" : ""}`);
    for (const [p, dot] of dotNode) {
      const kind = pairClass(p), s = stateOf[p], played = plan().played[s] === p - G.state_ptr[s];
      dot.setAttribute("d", SHAPES[kind](...dotAt(p)));
      dot.setAttribute("class", `dot c${kind}${played ? " played" : ""}${p === chosenPair ? " chosen" : ""}`);
    }
    above.replaceChildren();
    drawWay(); drawReasons(); say(); explain();
  }
  function centre(s) { const [x, y] = corner(s); return [x + cw / 2, y + ch / 2]; }
  function way() {
    const found = [D.start];
    for (let h = 0; h + 1 < H; h++) {
      const s = found[h], n = plan().played[s];
      if (n === NONE) break;
      const p = G.state_ptr[s] + n;
      let best = G.pair_ptr[p];
      for (let e = best; e < G.pair_ptr[p + 1]; e++) if (G.probability[e] > G.probability[best]) best = e;
      found.push(G.successor[best]);
    }
    return found;
  }
  function drawWay() {
    const points = way().filter((s) => V.panels.length === 1 || cellNode.has(s)).map((s) => { const [x, y] = corner(s); return named ? `${x + cw - 7},${y + 8}` : centre(s).join(","); });
    if (D.truth && (layers || V.panels.length === 1)) above.append(make("polyline", { points: points.join(" "), class: "way" }));
  }
  function link(p, e, extra) {
    const [x1, y1] = dotAt(p), s = G.successor[e], [cx, cy] = corner(s);
    const [x2, y2] = layers ? [cx, cy + ch / 2] : centre(s);
    if (!layers && s !== undefined && V.panels.length > 1 && V.panel[s] !== V.panel[stateOf[p]]) extra += " later";
    const bend = layers ? `C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2}` : `Q${(x1 + x2) / 2 + 8} ${(y1 + y2) / 2 - 8}`;
    above.append(make("path", { d: `M${x1} ${y1}${bend} ${x2} ${y2}`, class: `edge ${extra}` }));
  }
  function drawReasons() {
    if (chosenPair < 0 || (!layers && layerOf[stateOf[chosenPair]] !== layer)) return;
    for (let e = G.pair_ptr[chosenPair]; e < G.pair_ptr[chosenPair + 1]; e++) link(chosenPair, e, "");
    for (const step of chain(chosenPair)) if (step.pair >= 0 && step.fails && (layers || step.pair === chosenPair)) link(step.pair, step.edge, "fails");
  }
  function say() {
    let done = 0, safe = 0, wrong = 0;
    for (let p = 0; p < G.action.length; p++) { safe += G.safe_pairs[p]; if (plan().pairs[p]) { if (G.safe_pairs[p]) done++; else wrong++; } }
    const bad = wrong ? `, and ${count(wrong)} that are not safe` : "";
    if (!D.truth) { $("status").textContent = `Plan ${count(plan().number)}: ${count(plan().pairs.reduce((a, b) => a + b, 0))} of ${count(G.action.length)} actions certified` + (plan().consistent ? "" : " (the data contradict the assumptions: the fallback alone)"); return; }
    $("status").textContent = `Plan ${count(plan().number)}, from episode ${count(plan().episode)}: ${count(done)} of ${count(safe)} truly safe actions certified${bad}` + (plan().consistent ? "" : " (the data contradict the assumptions: the fallback alone)");
    $("plan").setAttribute("aria-valuetext", $("status").textContent);
  }

  // --- why ---------------------------------------------------------------------------------------------
  const bounds = (e, j) => { const at = G.row[e] * m + j; return [plan().lower[at], G.cost[at], plan().upper[at]]; };
  function chain(p) { // the steps of surefoot.plan.why, from its arrays
    const steps = [];
    for (;;) {
      const kind = plan().kind[p], edge = G.pair_ptr[p] + plan().edge[p], limit = plan().limit[p];
      steps.push({ pair: p, kind, edge, limit, fails: [KIND.COST, KIND.FUTURE, KIND.FORBIDDEN, KIND.OUTSIDE].includes(kind) });
      if (kind !== KIND.FUTURE) return steps;
      const s = G.successor[edge];
      if (s >= decisions) { steps.push({ pair: -1, state: s, limit: plan().last_limit[s - decisions] }); return steps; }
      p = G.state_ptr[s] + plan().nearest[s];
    }
  }
  const boundAt = (j, h) => Array.isArray(D.limits[j].bound) ? D.limits[j].bound[h] : D.limits[j].bound;
  const F = D.features && { ...D.features, rows: unpack(D.features.rows, "f4"), row: unpack(D.features.row, "u4"), last_row: unpack(D.features.last_row, "u4") };
  function rowFeatures(row, j) { // of a cost row, those that the limit depends on
    if (!F || row === 0xffffffff) return "";
    const words = F.names.map((name, i) => [name, F.rows[row * F.names.length + i]]).filter(([, x], i) => x !== 0 && F.used[j][i]).map(([name, x]) => `${name}=${Number(x.toPrecision(4))}`);
    return words.length ? ` with ${words.slice(0, 8).join(", ")}${words.length > 8 ? ", …" : ""}` : "";
  }
  function sentence(step, first) {
    const limit = D.limits[step.limit], bound = boundAt(step.limit, layerOf[step.pair < 0 ? step.state : stateOf[step.pair]]);
    if (step.pair < 0) {
      const at = (step.state - decisions) * m + step.limit;
      return `At the end, in state ${stateTold(step.state)}, ${limit.name} may be ${nice(plan().last_upper[at])}${F ? rowFeatures(F.last_row[step.state - decisions], step.limit) : ""}; the limit is ${bound}.`;
    }
    const s = stateOf[step.pair], to = stateTold(G.successor[step.edge]), [lower, , upper] = bounds(step.edge, step.limit);
    const who = first ? "This action" : `At step ${layerOf[s]}, in state ${stateTold(s)}, the nearest to being certified is action ${actionName(step.pair)}: it`;
    const has = F ? rowFeatures(F.row[step.edge], step.limit) : "";
    const own = D.by_pair[layerOf[s]], towards = own ? "" : `towards ${to}, `;
    switch (step.kind) {
      case KIND.FALLBACK: return `${who} is the fallback’s own, safe by assumption.`;
      case KIND.FORBIDDEN: return `${who} may lead to state ${to} (step ${layerOf[s] + 1}), which is forbidden.`;
      case KIND.OUTSIDE: return `${who} keeps every limit now; what may follow is not expanded.`;
      case KIND.INSIDE: return `${who} is not certified: the state itself is forbidden.`;
      case KIND.PROVED: return `${who} is proved safe. ${own ? "" : `Its tightest successor is ${to}: there `}${limit.name} is at most ${nice(upper)}${has}, the limit is ${bound}; and every state that may follow has a certified action.`;
      case KIND.UNPROVED: return `${who} is open to this agent, though it is not proved safe.`;
      case KIND.FUTURE: return `${who} keeps every limit now, but may lead to state ${to} (step ${layerOf[s] + 1}), which has no certified action.`;
      case KIND.INCONSISTENT: return `${who} is not certified, because the data contradict the assumptions.`;
      default: return lower > bound
        ? `${who} is proved unsafe: ${towards}${limit.name} is at least ${nice(lower)}${has}; the limit is ${bound}.`
        : `${who} may break a limit: ${towards}${limit.name} may be ${nice(upper)}${has}; the limit is ${bound}.`;
    }
  }
  function purpose(p) { // of an action that is played to explore
    const s = stateOf[p], text = plan().played[s] === p - G.state_ptr[s] && plan().purposes[plan().purpose[s]];
    return text ? make("p", { id: "why-played" }, `It is played ${text}; ${plan().hope}.`) : make("p", { hidden: "" });
  }
  function table(p, all) {
    const body = make("tbody"), reason = chain(p)[0], cost = D.by_pair[layerOf[stateOf[p]]] && reason.kind === KIND.COST;
    for (let e = G.pair_ptr[p]; e < G.pair_ptr[p + 1]; e++) {
      const h = layerOf[stateOf[p]];
      let tight = 0;
      for (let j = 1; j < m; j++) if (bounds(e, j)[2] - boundAt(j, h) > bounds(e, tight)[2] - boundAt(tight, h)) tight = j;
      for (let j = 0; j < m; j++) {
        if (!all && j !== tight) continue;
        const [lower, truth, upper] = bounds(e, j), fails = reason.fails && (cost || e === reason.edge) && (reason.kind === KIND.FUTURE || reason.kind === KIND.FORBIDDEN || j === reason.limit);
        const chance = (100 * G.probability[e]).toFixed(0) + "%";
        const row = make("tr", fails ? { class: "fails" } : {}, ...[stateName(G.successor[e]), ...(D.truth ? [chance] : []), ...(m > 1 ? [`${D.limits[j].name} ≤ ${boundAt(j, h)}`] : []), nice(lower), ...(D.truth ? [nice(truth)] : []), nice(upper), ...(m > 1 ? [] : [String(boundAt(j, h))])].map((word) => make("td", {}, word)));
        body.append(row);
      }
    }
    const heads = ["to", ...(D.truth ? ["chance"] : []), ...(m > 1 ? ["limit"] : []), "lower", ...(D.truth ? ["true"] : []), "upper", ...(m > 1 ? [] : ["limit"])];
    return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((word) => make("th", {}, word)))), body));
  }
  function explain() {
    const box = $("why");
    if (chosenState < 0) return;
    const s = chosenState, kind = stateClass(s);
    box.replaceChildren(make("h3", {}, `Step ${layerOf[s]}, state ${stateTold(s)}`), make("div", { class: `verdict v${Math.min(kind, 2)}` }, CLASSES[kind]));
    if (s >= decisions) { box.append(make("p", {}, lastCost ? "The last step: only its own cost counts." : "The last step: nothing is decided here.")); return; }
    const list = make("div", { class: "actions", role: "group", "aria-label": "actions" });
    for (let p = G.state_ptr[s]; p < G.state_ptr[s + 1]; p++) {
      const played = plan().played[s] === p - G.state_ptr[s];
      list.append(make("button", { type: "button", "data-choose": p, "aria-pressed": String(p === chosenPair), title: CLASSES[pairClass(p)] }, mark(pairClass(p)), actionName(p) + (played ? " (played)" : "")));
    }
    box.append(make("p", { class: "quiet" }, "Choose an action:"), list);
    if (chosenPair < 0) return;
    const verdict = plan().pairs[chosenPair] ? "certified" : "not certified";
    box.append(
      make("h3", { id: "why-title" }, `Action ${actionName(chosenPair)}: ${verdict}`),
      D.truth ? make("div", { class: "quiet" }, `In truth it is ${G.safe_pairs[chosenPair] ? "safe" : "unsafe"}.`) : "",
      make("ol", { id: "why-steps" }, ...chain(chosenPair).map((step, i) => make("li", {}, sentence(step, i === 0)))),
      purpose(chosenPair),
      table(chosenPair, false));
    if (m > 1) box.append(make("p", { class: "quiet" }, "The tightest limit of each successor."), make("details", {}, make("summary", {}, "All limits"), table(chosenPair, true)));
  }

  // --- what the reader does ----------------------------------------------------------------------------
  function choose(target) {
    if (target.dataset.choose !== undefined || target.dataset.pair !== undefined) {
      chosenPair = Number(target.dataset.choose ?? target.dataset.pair); chosenState = stateOf[chosenPair];
    } else if (target.dataset.state !== undefined) { chosenState = Number(target.dataset.state); chosenPair = -1; } else return;
    paint();
  }
  $("picture").addEventListener("click", (event) => choose(event.target));
  $("picture").addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(event.target); } });
  $("why").addEventListener("click", (event) => { const button = event.target.closest("[data-choose]"); if (button) choose(button); });
  const tip = $("tip");
  $("picture").addEventListener("pointermove", (event) => {
    const at = event.target.dataset;
    if (event.pointerType === "touch" || !at || (at.pair === undefined && at.state === undefined)) { tip.hidden = true; return; }
    if (at.pair !== undefined) {
      const p = Number(at.pair);
      tip.replaceChildren(make("strong", {}, `step ${layerOf[stateOf[p]]}, state ${stateTold(stateOf[p])}, action ${actionName(p)}`), make("div", {}, `${CLASSES[pairClass(p)]}; reward ${nice(G.reward[p])}`), table(p, false));
      if (m > 1) tip.append(make("div", { class: "quiet" }, "the tightest limit of each successor"));
    } else {
      const s = Number(at.state);
      tip.replaceChildren(make("strong", {}, `step ${layerOf[s]}, state ${stateTold(s)}`), make("div", {}, CLASSES[stateClass(s)]));
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 12) : event.clientY + 18}px`;
  });
  $("picture").addEventListener("pointerleave", () => { tip.hidden = true; });
  $("plan").max = String(plans.length - 1);
  $("plan").value = String(now);
  $("plan").addEventListener("input", (event) => { now = Number(event.target.value); paint(); });
  if (!layers) {
    $("layer").max = String(H - 1);
    $("layer").addEventListener("input", (event) => { layer = Number(event.target.value); $("layer-value").textContent = String(layer); build(); });
  }
  let timer = 0;
  $("play").addEventListener("click", () => {
    if (timer) { clearInterval(timer); timer = 0; $("play").textContent = "▶ play"; return; }
    if (now === plans.length - 1) now = -1;
    $("play").textContent = "❚❚ stop";
    const next = () => {
      now++; $("plan").value = String(now); paint();
      if (now >= plans.length - 1) { clearInterval(timer); timer = 0; $("play").textContent = "▶ play"; }
    };
    next(); timer = setInterval(next, 450);
  });
  // Begin where something can still be learnt: the last plan in which a truly safe action is not yet certified.
  const isOpen = (which) => (p) => !which.pairs[p] && G.safe_pairs[p];
  const everything = [...G.action.keys()];
  const early = plans.findLastIndex((which) => everything.some(isOpen(which)));
  if (early >= 0) now = early;
  $("plan").value = String(now);
  const open = everything.filter(isOpen(plan()));
  chosenPair = open.find((p) => plan().kind[p] === KIND.FUTURE) ?? open[0] ?? G.state_ptr[D.start];
  chosenState = stateOf[chosenPair];
  if (!layers) { layer = layerOf[chosenState]; $("layer").value = String(layer); $("layer-value").textContent = String(layer); }
  build();
  const [atX, atY] = corner(chosenState), frame = $("picture"); // bring what is chosen into sight, without moving the page
  frame.scrollLeft = atX - frame.clientWidth / 2;
  frame.scrollTop = atY - frame.clientHeight / 2;
};
{
  const data = JSON.parse(document.getElementById("data").textContent);
  if (data && data.explorer) window.surefootExplore(data.explorer);
}
