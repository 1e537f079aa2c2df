// What pages can do better with a script: switch the theme, copy a text, show what is new, and not send a form twice. They
// work without it.
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
    field.select();
    try { await navigator.clipboard.writeText(field.value); } catch { document.execCommand("copy"); }
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 2000);
  };

  // A narrow screen scrolls the navigation sideways to the page that is open.
  addEventListener("DOMContentLoaded", () => {
    const current = document.querySelector("nav [aria-current]");
    const nav = current?.closest("nav");
    if (nav) nav.scrollLeft = current.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;
  });

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
      const body = document.querySelector("main table tbody");
      // A page without rows has no table either.
      if (!body) { if (selected) location.reload(); return; }
      const template = document.createElement("template");
      template.innerHTML = html;
      const fresh = template.content.firstElementChild;
      const old = body.querySelector(`[data-row="${fresh.dataset.row}"]`);
      if (old) {
        // What a person is about to use stays.
        if (old.outerHTML === fresh.outerHTML || old.contains(document.activeElement)) return;
        const checked = old.querySelector("input")?.checked;
        old.replaceWith(fresh);
        if (checked) fresh.querySelector("input").checked = true;
      } else if (selected) {
        const next = [...body.rows].find((row) => row.dataset.row < fresh.dataset.row) ?? null;
        if (!next && body.rows.length >= most) return;
        fresh.classList.add("new");
        body.insertBefore(fresh, next);
        if (body.rows.length > most) body.lastElementChild.remove();
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

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.hasAttribute("data-theme-toggle")) {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* The choice lasts for this page. */ }
    }
    if (button?.dataset.copy) copy(button);
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

  // Either all events of an endpoint are chosen, or single kinds.
  document.addEventListener("change", (event) => {
    const picker = event.target.closest("[data-picker]");
    if (!picker || !event.target.checked) return;
    const isAll = event.target.value === "*";
    for (const box of picker.querySelectorAll("input:checked")) {
      if ((box.value === "*") !== isAll) box.checked = false;
    }
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
