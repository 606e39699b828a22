// What a command waits for, in words: who has not come, or why the other side cannot be reached.
import { said } from "./said.js";
import { duration, t } from "./words.js";

// How long one waits before it may be that both do.
const BOTH_MAY_WAIT_MS = 15000;
const RELAY = /^the relay (.*)$/;
// What systems say of a name that has no address, of a port at which nobody listens, and of a machine that is silent.
const REASONS = [
  ["name", /failed to lookup address|name has no address|name service did not answer|not known|No such host/i],
  ["refused", /refused/i],
  ["silent", /timed out|unreachable|no route/i],
];

const host = (address) => address.replace(/:\d+$/, "");

// Why the other side, or the `relay`, cannot be reached.
function why(waiting, relay) {
  const address = relay || waiting.address;
  const [kind] = REASONS.find(([, is]) => is.test(waiting.obstacle)) || [];
  if (kind === "name") return t("waits.name", { host: host(address) });
  if (kind === "silent") return t("waits.silent", { address });
  if (kind === "refused") return t(relay ? "waits.norelay" : "waits.refused", { address });
  return said(waiting.obstacle);
}

// For whom a command waits: a line, what may help, and for how long it has waited. `kind` is the command's.
export function waits(kind, waiting) {
  const relay = RELAY.exec(waiting.address)?.[1];
  const time = t("waits.time", { time: duration(waiting.waited_ms / 1000) });
  const isLong = waiting.waited_ms >= BOTH_MAY_WAIT_MS;
  const hint = isLong ? t(kind === "invite" || kind === "join" ? "waits.both.exchange" : "waits.both.run") : "";
  if (waiting.obstacle) return { line: why(waiting, relay), hint: "", time };
  if (relay) return { line: t("waits.relay", { address: relay }), hint, time };
  if (!waiting.listens) return { line: t("waits.calls", { address: waiting.address }), hint, time };
  const key = kind === "invite" ? "waits.joins" : "waits.connects";
  return { line: t(key, { address: waiting.address }), hint, time };
}
