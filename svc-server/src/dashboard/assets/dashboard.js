// What pages can do better with a script: switch the theme, copy a text, show what is new, go through lists by keys, and not
// send a form twice. They work without it.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const theme = stored();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;

  const copy = async (button) => {
    const field = document.getElementById(button.dataset.copy);
    if (field.select) field.select(); else getSelection().selectAllChildren(field);
    try { await navigator.clipboard.writeText(field.value ?? field.textContent); } catch { document.execCommand("copy"); }
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 2000);
  };

  // "/" and Ctrl-K begin a search, unless something is being typed.
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    const isShortcut = (event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping);
    const field = document.querySelector("[data-find]");
    if (!isShortcut || !field) return;
    event.preventDefault();
    field.focus();
    field.select();
  });

  // A live list: the server sends rows as they come and change, and this puts them into the table by their ids, which sort
  // like the rows. A hidden page is not live, so that nobody is sent what nobody sees.
  const live = (element) => {
    const [state, button] = element.children;
    const most = Number(element.dataset.rows);
    let source = null;
    let paused = false;

    const show = (text, name) => {
      if (state.textContent !== text) state.textContent = text;
      element.dataset.state = name;
    };
    const put = ({ html, selected }) => {
      const { list } = element.dataset;
      const body = list ? document.getElementById(list) : document.querySelector("main table tbody");
      // A page without rows has no table either.
      if (!body) { if (selected) location.reload(); return; }
      const template = document.createElement("template");
      template.innerHTML = html;
      const fresh = template.content.firstElementChild;
      const headings = body.closest("table")?.tHead.rows[0].cells;
      [...fresh.cells ?? []].forEach((cell, column) => {
        if (cell.localName === "td") cell.setAttribute("data-label", headings[column].textContent);
      });
      const old = body.querySelector(`[data-row="${fresh.dataset.row}"]`);
      if (old) {
        // What a person is about to use stays.
        if (old.outerHTML === fresh.outerHTML || old.contains(document.activeElement)) return;
        const checked = old.querySelector("input")?.checked;
        old.replaceWith(fresh);
        if (checked) fresh.querySelector("input").checked = true;
      } else if (selected) {
        const next = [...body.children].find((row) => row.dataset.row < fresh.dataset.row) ?? null;
        if (!next && body.children.length >= most) return;
        fresh.classList.add("new");
        body.insertBefore(fresh, next);
        if (body.children.length > most) body.lastElementChild.remove();
      }
    };
    const stop = () => { source?.close(); source = null; };
    const start = () => {
      if (source || paused || document.hidden) return;
      source = new EventSource(element.dataset.live);
      source.onopen = () => show("Live", "on");
      source.onmessage = (event) => JSON.parse(event.data).reverse().forEach(put);
      // The browser connects again by itself unless it was refused.
      source.onerror = () => {
        if (source.readyState === EventSource.CLOSED) { stop(); show("Not live", "off"); } else show("Connecting", "off");
      };
    };
    button.addEventListener("click", () => {
      paused = source !== null;
      button.textContent = paused ? "Resume" : "Pause";
      if (paused) { stop(); show("Paused", "off"); } else start();
    });
    document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else start(); });
    addEventListener("pagehide", stop);
    addEventListener("pageshow", start);
    start();
  };
  addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-live]").forEach(live));

  // What is under way is asked for again until it has ended.
  addEventListener("DOMContentLoaded", () => {
    if (!document.querySelector("[data-refresh]")) return;
    const timer = setInterval(async () => {
      const part = document.querySelector("[data-refresh]");
      if (!part) return clearInterval(timer);
      if (document.hidden) return;
      const response = await fetch(location.href);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = response.ok && page.getElementById(part.id);
      if (fresh) part.replaceWith(fresh); else clearInterval(timer);
    }, 2000);
  });

  // Ticks all boxes of a form, or none if all are ticked, without asking for the page that has them ticked.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-select-all]");
    if (!link) return;
    event.preventDefault();
    const boxes = [...document.querySelectorAll(`input[type=checkbox][form="${link.dataset.selectAll}"]`)];
    const all = boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = !all;
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.hasAttribute("data-theme-toggle")) {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* The choice lasts for this page. */ }
    }
    if (button?.dataset.copy) copy(button);
    if (button?.hasAttribute("data-print")) print();
    // One confirmation is open at a time, and a click elsewhere closes it.
    for (const open of document.querySelectorAll("details.confirm[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const open of document.querySelectorAll("details.confirm[open]")) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  });

  // j and k go through the rows of a list by their links, which Enter opens; ? lists the keys. They can be turned off.
  const KEYS = [["j", "next row"], ["k", "row before"], ["Enter", "open the row"], ["/ or Ctrl-K", "search"], ["?", "these keys"], ["Esc", "close"]];
  const keysAreOff = () => { try { return localStorage.getItem("keys") === "off"; } catch { return false; } };
  const showKeys = () => {
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-labelledby", "keys-title");
    const rows = KEYS.map(([key, does]) => `<div><dt><kbd>${key}</kbd></dt><dd>${does}</dd></div>`).join("");
    dialog.innerHTML = `<h2 id="keys-title">Keys</h2><dl class="facts">${rows}</dl>
      <label><input type="checkbox"> Use the keys of one letter</label><form method="dialog"><button>Close</button></form>`;
    const box = dialog.querySelector("input");
    box.checked = !keysAreOff();
    box.addEventListener("change", () => {
      try { localStorage.setItem("keys", box.checked ? "on" : "off"); } catch { /* They stay as they are. */ }
    });
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  };
  const step = (by) => {
    const links = [...document.querySelectorAll("main tbody tr, main .timeline li")].map((row) => row.querySelector("a[href]")).filter(Boolean);
    const row = document.activeElement?.closest("tr, li");
    const at = links.findIndex((link) => row?.contains(link));
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    next?.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), select, textarea, dialog")) return;
    if (event.key === "?") showKeys();
    else if ((event.key === "j" || event.key === "k") && !keysAreOff()) step(event.key === "j" ? 1 : -1);
    else return;
    event.preventDefault();
  });

  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "true";
  });
  // The page that "back" shows again can send its forms again.
  addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });
})();
