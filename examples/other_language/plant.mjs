// An oven in another language. It knows nothing of Python: it starts `surefoot study pipe`, writes one line of JSON per
// request, and reads one line per answer.
//
//     node examples/other_language/plant.mjs [FOLDER] [EPISODES] [SEED]
//
// Run it twice with the same folder and it continues where it was, even if it was killed in the middle of an episode.

import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const [folder = "oven.study", episodes = "60", seed = "1"] = process.argv.slice(2);
const surefoot = process.env.SUREFOOT ?? "surefoot";
const here = dirname(fileURLToPath(import.meta.url));

// --- the oven, whose weights are unknown ------------------------------------------------------------------------------

let random = Number(seed) >>> 0;
function uniform() {
  random = (random + 0x6d2b79f5) >>> 0;
  let t = Math.imul(random ^ (random >>> 15), random | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
const gaussian = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());

function oven(heat, power) {
  const after = Math.min(heat + power - Math.min(heat, 1) + (uniform() < 0.3 ? 1 : 0), 4);
  const stress = 0.05 + 0.4 * (after / 4) + 0.2 * (power / 2);
  return { after, stress, measured: stress + 0.05 * gaussian() };
}

// --- the study, in its own process ------------------------------------------------------------------------------------

if (!existsSync(join(folder, "journal.jsonl"))) {
  const made = spawnSync(surefoot, ["study", "new", folder, "--problem", join(here, "oven.json")]);
  if (made.status !== 0) throw new Error(String(made.stderr));
}
const server = spawn(surefoot, ["study", "pipe", folder], { stdio: ["pipe", "pipe", "inherit"] });
const answers = createInterface({ input: server.stdout })[Symbol.asyncIterator]();

async function call(request) {
  server.stdin.write(JSON.stringify(request) + "\n");
  const { value, done } = await answers.next();
  if (done) throw new Error("the study went away");
  const answer = JSON.parse(value);
  if (answer.error) throw new Error(answer.error);
  return answer;
}

// --- the loop ---------------------------------------------------------------------------------------------------------

let highest = 0;
let reward = 0;
let steps = 0;
let status = await call({ call: "status" });
if (status.safe_mode) console.log(`safe mode: ${status.alarms.map((alarm) => alarm.message).join("; ")}`);
const until = status.episodes + Number(episodes);
let next = status.next;
while (next !== "begin" || status.episodes < until) {
  if (next === "begin") {
    status.episodes = (await call({ call: "begin" })).episode;
  }
  const offer = await call({ call: "ask" }); // after a crash: the one that was pending
  const { after, stress, measured } = oven(offer.state, offer.action);
  ({ next } = await call({ call: "tell", ask_id: offer.ask_id, next_state: after, cost: measured }));
  highest = Math.max(highest, stress);
  reward += offer.state / 4;
  steps += 1;
}
status = await call({ call: "status" });
const kept = highest <= 0.6 ? "kept" : "BROKEN";
console.log(
  `${steps} steps, ${(reward / steps).toFixed(3)} a step, highest true stress ${highest.toFixed(3)}: limit ${kept}; ` +
    `${status.certified_pairs} of ${status.pairs} actions certified; ${status.guarantee}`,
);
server.stdin.end();
