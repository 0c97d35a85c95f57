// The actions of a person: a dialog for each action. A dry run comes first; only what the API server accepted in it can be
// written, with the same parameters.
"use strict";

const secret = document.querySelector("meta[name=drydock-token]").content;
let opener;

// waits is how long the page waits for an answer, in ms: longer than the program takes, and shorter than the connection lasts.
const waits = 55_000;

function parameters(form) {
  const given = {};
  for (const field of form.querySelectorAll("input, select")) if (field.value.trim() !== "") given[field.name] = field.value.trim();
  return given;
}

function outcome(dialog, kind, text) {
  const place = dialog.querySelector(".outcome");
  place.dataset.kind = kind;
  place.textContent = text;
}

// changed takes back the result of a dry run: the form now has other values.
function changed(dialog) {
  dialog.querySelector("[data-do=write]").disabled = true;
  delete dialog.dataset.click;
  outcome(dialog, "", "");
  clearTimeout(dialog.later);
  dialog.later = setTimeout(() => show(dialog), 150);
}

// show gets the command that makes the same request, and shows it.
async function show(dialog) {
  const query = new URLSearchParams(parameters(dialog.querySelector("form")));
  try {
    const answer = await fetch(dialog.dataset.path + "?" + query);
    if (answer.ok) dialog.querySelector(".command code").textContent = (await answer.json()).command;
  } catch { /* the page shows a lost connection elsewhere */ }
}

async function ask(dialog, dryRun) {
  const form = dialog.querySelector("form");
  const write = dialog.querySelector("[data-do=write]");
  if (!form.reportValidity()) return;
  const given = parameters(form);
  const click = dialog.dataset.click; // a number is valid for one write
  delete dialog.dataset.click;
  write.disabled = true;
  outcome(dialog, "", dryRun ? "The API server checks the change…" : "Writing…");
  try {
    const answer = await fetch(dialog.dataset.path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Drydock-Token": secret },
      body: JSON.stringify(dryRun ? { params: given, dryRun } : { params: given, dryRun, click }),
      signal: AbortSignal.timeout(waits),
    });
    const said = await answer.json();
    if (!answer.ok) {
      outcome(dialog, said.unknown ? "unknown" : "refused", said.problem);
      return;
    }
    dialog.querySelector(".command code").textContent = said.command;
    if (dryRun) {
      if (JSON.stringify(parameters(form)) !== JSON.stringify(given)) return;
      outcome(dialog, "tried", "The API server would accept this. Nothing is written yet. If you write it: " + said.said);
      dialog.dataset.click = said.click;
      write.disabled = false;
      write.focus();
    } else {
      outcome(dialog, "written", said.said);
      dialog.querySelector("[data-do=close]").focus();
    }
  } catch {
    const cluster = dialog.querySelector(".cluster").textContent;
    const where = cluster && cluster + ": ";
    if (dryRun) outcome(dialog, "refused", `${where}kubectl drydock ui did not answer. Nothing was written.`);
    else outcome(dialog, "unknown", `${where}kubectl drydock ui did not answer. It is unknown whether the change was written: check the node before you try again.`);
  }
}

function open(button) {
  const dialog = document.getElementById(button.dataset.open);
  const form = dialog.querySelector("form");
  opener = button.id;
  form.reset();
  const id = form.querySelector("[name=id]");
  const read = document.getElementById("node").dataset; // the repair that the person sees, not one that came later
  if (id) id.value = dialog.id === "word-reset" ? read.exhausted : read.repair;
  changed(dialog);
  dialog.showModal();
  (form.querySelector("input, select") ?? form.querySelector("[data-do=try]")).focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-open], dialog.word [data-do]");
  if (!button) return;
  if (button.dataset.open) open(button);
  else if (button.dataset.do === "close") button.closest("dialog").close();
  else if (button.dataset.do === "write") ask(button.closest("dialog"), false);
});

document.addEventListener("submit", (event) => {
  const dialog = event.target.closest("dialog.word");
  if (!dialog) return;
  event.preventDefault();
  ask(dialog, true);
});

document.addEventListener("input", (event) => {
  const dialog = event.target.closest("dialog.word");
  if (dialog) changed(dialog);
});

// The page may have replaced the button while its dialog was open: the focus goes to the new button.
for (const dialog of document.querySelectorAll("dialog.word")) {
  dialog.addEventListener("close", () => (document.getElementById(opener) ?? document.getElementById("main")).focus());
}
