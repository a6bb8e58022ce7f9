// Amounts, times and names as people read them.
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

export function amount(resource, value) {
  if (resource === "cpu") return number(value / 1000, 2);
  if (resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-")) return bytes(value);
  return number(value);
}

export function bytes(value) {
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BINARY.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${number(value, value < 10 && unit > 0 ? 1 : 0)}${BINARY[unit]}`;
}

export function number(value, digits = 0) {
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

export function percent(part, whole) {
  return whole > 0 ? `${Math.round((100 * part) / whole)}%` : "–";
}

export function duration(seconds) {
  if (seconds < 0) return `-${duration(-seconds)}`;
  if (seconds < 120) return `${Math.floor(seconds)}s`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 2 * 86400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

export function age(moment) {
  const since = typeof moment === "number" ? moment : Date.parse(moment) / 1000;
  return duration(Math.max(Date.now() / 1000 - since, 0));
}

// A time of a source: seconds since the start, the number of a step, or seconds since 1970.
export function moment(kind, time) {
  if (kind === "recording") return `step ${number(Math.floor(time))}`;
  if (kind === "simulation") return clock(time);
  return new Date(time * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

function clock(seconds) {
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  const text = `${two((seconds / 3600) % 24)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}`;
  return days > 0 ? `${days}d ${text}` : text;
}

// The order in which people list names: node-2 before node-10.
export const byName = new Intl.Collator("en", { numeric: true }).compare;
