// Shows beside each time how long ago it was, or how long it takes until then. Without this script, the page shows only the time.
"use strict";

function span(seconds) {
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const first = units.findIndex(([, length]) => seconds >= length);
  if (first < 0) return "0s";
  const [name, length] = units[first];
  const whole = Math.floor(seconds / length) + name;
  const next = units[first + 1];
  if (!next) return whole;
  const rest = Math.floor((seconds % length) / next[1]);
  return rest > 0 ? whole + rest + next[0] : whole;
}

function tick() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const left = Math.round((Date.parse(time.dateTime) - Date.now()) / 1000);
    if (Number.isNaN(left)) continue;
    const text = left > 0 ? "in " + span(left) : span(-left) + " ago";
    if (time.dataset.span !== text) time.dataset.span = text;
  }
}

tick();
setInterval(tick, 1000);
