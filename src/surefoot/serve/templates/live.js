// The live page: it listens, shows what the server sends, and lets an operator acknowledge an alarm.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const KEY = "surefoot-token", SILENCE = 8000; // milliseconds without a word before the page says that it is not live
  let token = sessionStorage.getItem(KEY) || "", state = null, explorer = -1, heard = 0, alive = false, attempt = 0;

  const authorized = (more = {}) => ({ Authorization: `Bearer ${token}`, ...more });
  function say(words, kind) {
    if ($("connection").textContent !== words) $("connection").textContent = words;
    $("connection").className = kind;
  }

  // --- listening ---------------------------------------------------------------------------------------
  async function listen(mine) {
    const response = await fetch("/v1/events", { headers: authorized(), cache: "no-store" });
    if (response.status === 401 || response.status === 403) {
      token = ""; sessionStorage.removeItem(KEY); $("login").hidden = false;
      throw Object.assign(new Error((await response.json()).error), { final: true });
    }
    if (!response.ok) throw new Error(`the server answers ${response.status}`);
    sessionStorage.setItem(KEY, token);
    $("login").hidden = true;
    alive = true; attempt = 0;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    while (mine === current) {
      const { value, done } = await reader.read();
      if (done) break;
      heard = Date.now();
      say("● live", "good");
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) if (event.startsWith("data: ")) show(JSON.parse(event.slice(6)));
    }
    throw new Error("the connection was closed");
  }
  let current = 0;
  async function keepListening() {
    const mine = ++current;
    while (mine === current && token) {
      try { await listen(mine); } catch (error) {
        alive = false;
        say(error.final ? error.message : "✗ not live: the connection is lost, trying again. What is shown may be old.", "bad");
        if (error.final) return;
        await new Promise((wait) => setTimeout(wait, Math.min(3000, 200 * 2 ** attempt++)));
      }
    }
  }
  setInterval(() => { if (alive && Date.now() - heard > SILENCE) say("✗ not live: nothing was heard for a while. What is shown may be old.", "bad"); }, 1000);

  // --- showing -----------------------------------------------------------------------------------------
  function show(message) {
    for (const [name, html] of Object.entries(message.parts)) {
      const place = name === "lead" ? document.querySelector(".lead") : $(`part-${name}`);
      if (place) place.innerHTML = html; // made by the server, which escapes every word; and no script may run from it
    }
    state = message.state;
    document.title = `${state.safe_mode ? "⚠ SAFE MODE" : "✓"} ${state.name}: surefoot study`;
    document.querySelector("h1").firstChild.textContent = `${state.name} `;
    forms();
    if (state.explorer !== explorer) { explorer = state.explorer; refresh(); }
  }
  async function refresh() {
    const response = await fetch("/v1/explorer", { headers: authorized(), cache: "no-store" });
    if (!response.ok) return;
    const found = await response.json();
    $("part-explorer").innerHTML = found.html;
    if (found.data) window.surefootExplore(found.data);
  }

  // --- an operator's answers ---------------------------------------------------------------------------
  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  let shown = "";
  function forms() {
    const wanted = JSON.stringify([state.safe_mode, state.alarms, state.safe_mode && state.episode]);
    if (wanted === shown) return; // what is being typed stays
    shown = wanted;
    const box = $("acknowledge");
    box.replaceChildren();
    if (!state.safe_mode) return;
    const outcome = make("p", { role: "status", id: "outcome" });
    if (state.episode !== null) {
      const form = make("form", { id: "abort-form" }, make("p", {}, `Episode ${state.episode} is in progress. Alarms are acknowledged between episodes: bring the plant to rest, then end the episode.`), make("label", {}, "reason ", make("input", { name: "reason", required: "" })), " ", make("button", { type: "submit" }, `End episode ${state.episode}`));
      form.addEventListener("submit", (event) => { event.preventDefault(); send("abort", { reason: form.reason.value, episode: state.episode }, outcome); });
      box.append(form, outcome);
      return;
    }
    const form = make("form", { id: "acknowledge-form" },
      make("label", {}, "reason ", make("textarea", { name: "reason", required: "", rows: "2" })),
      make("label", {}, make("input", { type: "checkbox", name: "discard" }), " drop all data: the plant has changed"),
      make("label", {}, make("input", { type: "checkbox", name: "trust" }), " with it, keep trusting the anchors"));
    state.limits.forEach((name, j) => form.append(make("label", {}, `larger noise scale of ${name} `, make("input", { name: `noise${j}`, inputmode: "decimal", size: "8" }))));
    form.append(make("label", {}, "why this noise is right, if check finds an error in it ", make("input", { name: "despite" })));
    form.append(make("button", { type: "submit" }, "Acknowledge"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const noise = {};
      state.limits.forEach((name, j) => { const text = form[`noise${j}`].value.trim(); if (text) noise[name] = Number(text); });
      if (Object.values(noise).some((value) => !Number.isFinite(value))) { outcome.textContent = "A noise scale is a number."; outcome.className = "bad"; return; }
      send("acknowledge", { reason: form.reason.value, discard_data: form.discard.checked, trust_anchors: form.trust.checked, alarms: state.alarms, ...(Object.keys(noise).length ? { noise } : {}), ...(form.despite.value.trim() ? { despite: form.despite.value } : {}) }, outcome);
    });
    box.append(form, outcome);
  }
  async function send(call, body, outcome) {
    try {
      const response = await fetch(`/v1/${call}`, { method: "POST", headers: authorized({ "Content-Type": "application/json" }), body: JSON.stringify(body) });
      const reply = await response.json();
      outcome.textContent = response.ok ? "Done, and on record." : reply.error;
      outcome.className = response.ok ? "good" : "bad";
    } catch { outcome.textContent = "The server could not be reached; whether it has acted is not known."; outcome.className = "bad"; }
  }

  $("login").addEventListener("submit", (event) => { event.preventDefault(); token = $("token").value.trim(); $("token").value = ""; keepListening(); });
  if (token) keepListening();
})();
