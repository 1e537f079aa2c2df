// What pages can do better with a script: switch the theme, copy a text, and not send a form twice. They work without it.
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

  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "true";
  });
  // The page that "back" shows again can send its forms again.
  addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });
})();
