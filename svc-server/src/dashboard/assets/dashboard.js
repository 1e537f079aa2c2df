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
    if (field.select) field.select(); else getSelection().selectAllChildren(field);
    try { await navigator.clipboard.writeText(field.value ?? field.textContent); } catch { document.execCommand("copy"); }
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
