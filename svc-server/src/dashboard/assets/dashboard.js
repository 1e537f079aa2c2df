// What pages can do better with a script: switch the theme, copy a text, suggest while a person types, show what is new, go through
// lists by keys, and not send a form twice. They work without it.
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
    button.dataset.label ??= button.textContent;
    button.textContent = "Copied";
    clearTimeout(button.copied);
    button.copied = setTimeout(() => { button.textContent = button.dataset.label; }, 2000);
  };

  // "/" and Ctrl-K begin a search, unless something is being typed.
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    const isShortcut = (event.key?.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping);
    const field = document.querySelector("[data-find]");
    if (!isShortcut || !field) return;
    event.preventDefault();
    field.focus();
    field.select();
  });

  const pageOf = async (response) => new DOMParser().parseFromString(await response.text(), "text/html");

  // Puts a contact into a field: its name, and the choice that says which of those with this name it is.
  const take = (field, choice) => {
    const control = field.form.elements[field.dataset.choice];
    field.value = choice.slice(choice.indexOf(" ") + 1);
    if (control.localName === "select") control.replaceChildren(new Option(field.value, choice));
    control.value = choice;
    field.focus();
  };

  // A new contact for a form that asks for one: its own form, in a dialog beside what was typed already.
  const create = async (field, url) => {
    const dialog = document.createElement("dialog");
    dialog.className = "form";
    dialog.setAttribute("aria-label", "New contact");
    // A page without the form says why there is none.
    const show = (page) => {
      const form = page.querySelector("main form.fields");
      form?.querySelector(".actions a")?.addEventListener("click", (event) => {
        event.preventDefault();
        dialog.close();
      });
      const parts = form ? [page.querySelector("main h1"), page.querySelector("main > .banner"), form] : [...page.querySelector("main").children];
      dialog.replaceChildren(...parts.filter(Boolean));
      return form;
    };
    const ask = async (address, options) => {
      try { return await fetch(address, options); } catch {
        const alert = document.createElement("p");
        Object.assign(alert, { className: "banner bad", role: "alert", textContent: "The server did not respond. Press Esc, and try again." });
        dialog.querySelector(".banner")?.remove();
        dialog.prepend(alert);
      }
    };
    const first = await ask(url);
    const form = first && show(await pageOf(first));
    if (form) {
      const [word, ...others] = field.value.trim().split(/\s+/);
      const typed = word.includes("@") ? { email: word } : { first_name: word, last_name: others.join(" ") };
      for (const [name, text] of Object.entries(typed)) form.elements[name].value = text;
    }
    dialog.addEventListener("submit", async (event) => {
      event.preventDefault();
      const body = new URLSearchParams(new FormData(event.target));
      const response = await ask(event.target.action, { method: "POST", body });
      if (!response) return;
      const page = await pageOf(response);
      if (!response.redirected) return show(page);
      const id = new URL(response.url).pathname.split("/").pop();
      take(field, `${id} ${page.querySelector("main h1").textContent}`);
      dialog.close();
    });
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  };

  // A field that suggests what the server finds for its text, in a list below it (the combobox of ARIA). The search opens what is
  // chosen; other fields take it into their form.
  const suggest = (field) => {
    const list = document.createElement("ul");
    list.id = `suggestions-${field.name}`;
    list.className = "suggestions";
    list.hidden = true;
    const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id };
    for (const [name, value] of Object.entries(attributes)) field.setAttribute(name, value);
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Suggestions");
    field.after(list);
    let asked = null;
    let marked = -1;

    const close = () => {
      asked?.abort();
      list.hidden = true;
      marked = -1;
      field.setAttribute("aria-expanded", "false");
      field.removeAttribute("aria-activedescendant");
    };
    const mark = (at) => {
      marked = (at + list.children.length) % list.children.length;
      [...list.children].forEach((option, place) => option.setAttribute("aria-selected", place === marked));
      field.setAttribute("aria-activedescendant", list.children[marked].id);
      list.children[marked].scrollIntoView({ block: "nearest" });
    };
    const choose = ({ dataset }) => {
      close();
      if (dataset.isNew) create(field, dataset.href);
      else if (dataset.choice) take(field, dataset.choice);
      else location.assign(dataset.href);
    };
    const ask = async () => {
      asked?.abort();
      const text = field.value.trim();
      if (!text) return close();
      const { signal } = asked = new AbortController();
      try {
        await new Promise((resolve) => { setTimeout(resolve, 150); });
        if (signal.aborted) return;
        const response = await fetch(`${field.dataset.suggest}?q=${encodeURIComponent(text)}`, { signal });
        const found = response.ok ? [...(await pageOf(response)).querySelectorAll("li")] : [];
        if (signal.aborted || document.activeElement !== field) return;
        list.replaceChildren(...found.map((item, place) => {
          const link = item.querySelector("a");
          const option = document.createElement("li");
          Object.assign(option, { id: `${list.id}-${place}`, role: "option", innerHTML: item.innerHTML });
          option.firstElementChild.replaceWith(Object.assign(document.createElement("span"), { textContent: link.textContent }));
          option.dataset.href = link.getAttribute("href");
          if (link.dataset.choice) option.dataset.choice = link.dataset.choice;
          if ("new" in link.dataset) option.dataset.isNew = "true";
          // The field keeps the focus.
          option.addEventListener("mousedown", (event) => event.preventDefault());
          option.addEventListener("click", () => choose(option));
          return option;
        }));
        const { left, bottom, width } = field.getBoundingClientRect();
        Object.assign(list.style, { left: `${left}px`, top: `${bottom + 4}px`, minWidth: `${width}px`, maxWidth: `${innerWidth - left - 16}px` });
        list.hidden = found.length === 0;
        marked = -1;
        field.setAttribute("aria-expanded", String(found.length > 0));
      } catch (error) {
        if (error.name !== "AbortError") close();
      }
    };
    field.addEventListener("input", ask);
    field.addEventListener("blur", close);
    addEventListener("scroll", close, { passive: true });
    addEventListener("resize", close);
    field.addEventListener("keydown", (event) => {
      if (list.hidden || event.isComposing) return;
      if (event.key === "ArrowDown") mark(marked + 1);
      else if (event.key === "ArrowUp") mark(marked < 0 ? -1 : marked - 1);
      else if (event.key === "Enter" && marked >= 0) choose(list.children[marked]);
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
    });
  };
  addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-suggest]").forEach(suggest));

  // A week by hours: each entry lies over the half hours that it takes, and a click beside them makes a booking then.
  const byHours = (week) => {
    const [first, hours] = [Number(week.dataset.firstHour), Number(week.dataset.hours)];
    week.classList.add("by-hours");
    week.style.setProperty("--rows", 2 * hours);
    week.querySelectorAll("tbody tr").forEach((day, at) => {
      day.style.setProperty("--day", at + 2);
      // What overlaps stands side by side, and the rest is as wide as the day.
      const timed = [...day.querySelectorAll("[data-row]")].map((entry) => ({ entry, from: Number(entry.dataset.row), rows: Number(entry.dataset.rows) }));
      const isAlone = (one) => timed.every((other) => other === one || other.from >= one.from + one.rows || one.from >= other.from + other.rows);
      for (const one of timed) {
        one.entry.style.gridRow = `${one.from} / span ${one.rows}`;
        if (isAlone(one)) one.entry.style.gridColumn = "1 / -1";
      }
      day.querySelector(".timed").style.gridTemplateColumns = timed.every(isAlone) ? "minmax(0, 1fr)" : "repeat(2, minmax(0, 1fr))";
      for (const entry of day.querySelectorAll("li")) entry.title = entry.innerText;
      const add = day.querySelector(".add");
      day.querySelector(".timed").addEventListener("click", ({ target, currentTarget, offsetY }) => {
        if (target !== currentTarget || !add) return;
        const halfHour = 2 * first + Math.floor(2 * hours * offsetY / currentTarget.clientHeight);
        const url = new URL(add.href);
        const date = url.searchParams.get("start").split("T")[0];
        url.searchParams.set("start", `${date}T${String(halfHour >> 1).padStart(2, "0")}:${halfHour % 2 ? "30" : "00"}`);
        url.searchParams.delete("offset");
        location.assign(url);
      });
    });
    const clock = document.createElement("ul");
    clock.className = "clock";
    clock.setAttribute("aria-hidden", "true");
    clock.append(...Array.from({ length: hours }, (_, hour) =>
      Object.assign(document.createElement("li"), { textContent: `${String(first + hour).padStart(2, "0")}:00` })));
    week.querySelector("table").append(clock);
  };
  addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-hours]").forEach(byHours));

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

  // The end of what is planned moves with its start, unless it was typed: an appointment is as long after it is moved.
  addEventListener("DOMContentLoaded", () => {
    for (const [starts, ends] of [["start_time", "end_time"], ["scheduled_start", "scheduled_end"]]) {
      const [start, end] = [starts, ends].map((name) => document.querySelector(`form input[name="${name}"]`));
      if (!start || !end) continue;
      const local = (text) => Date.parse(`${text}Z`);
      let length = end.value && local(end.value) - local(start.value);
      end.addEventListener("input", () => { length = null; });
      start.addEventListener("input", () => {
        if (!(length > 0) || Number.isNaN(local(start.value))) return;
        end.value = new Date(local(start.value) + length).toISOString().slice(0, end.value.length);
      });
    }
  });

  // The tab of the list that is shown is in sight, and a notice is shown once.
  addEventListener("DOMContentLoaded", () => {
    const tab = document.querySelector(".tabs [aria-current]");
    if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 16;
    const url = new URL(location);
    if (!url.searchParams.has("notice")) return;
    url.searchParams.delete("notice");
    history.replaceState(history.state, "", url);
  });

  // What is done with ticked records says how many they are.
  document.addEventListener("change", ({ target }) => {
    const button = target.form?.id === "selection" && target.form.querySelector("button");
    if (!button) return;
    const ticked = document.querySelectorAll("input[type=checkbox][form=selection]:checked").length;
    button.textContent = ticked === 1 ? "Apply to 1 record" : `Apply to ${ticked} records`;
  });

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

  // Goes on with what takes several steps. Without this, the person presses the button.
  addEventListener("DOMContentLoaded", () => document.querySelector("form[data-continue]")?.requestSubmit());

  // Leads from a page about a refusal back to the form, which the browser shows as it was.
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-back]")) history.back();
  });

  // Ticks all boxes of a form, or none if all are ticked, without asking for the page that has them ticked.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-select-all]");
    if (!link) return;
    event.preventDefault();
    const boxes = [...document.querySelectorAll(`input[type=checkbox][form="${link.dataset.selectAll}"]`)];
    const all = boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = !all;
    boxes[0]?.dispatchEvent(new Event("change", { bubbles: true }));
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
    // A form that only asks can ask again, as for a file.
    if ("repeat" in event.target.dataset) return;
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "true";
  });
  // The page that "back" shows again can send its forms again.
  addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });
})();
