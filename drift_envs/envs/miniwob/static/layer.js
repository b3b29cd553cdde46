// Between a task page of MiniWoB++ and the agent: the clock of the page, its settings, and its form as text.
// Loaded before every script of the page. Nothing here is visible to the page's own scripts but `driftLayer`.
"use strict";
(() => {
  // ---- time: it stands still between actions, and timers run in their order, without waiting ----
  const START = Date.UTC(2016, 9, 1, 12);
  const RealDate = Date;
  window.Date = class Date extends RealDate {
    constructor(...given) {
      if (given.length) super(...given);
      else super(START);
    }
    static now() {
      return START;
    }
  };
  let now = 0;
  let serial = 0;
  const timers = new Map();
  const schedule = (callback, delay, rest, repeats) => {
    const wait = Math.max(repeats ? 1 : 0, Number(delay) || 0);
    timers.set(++serial, { at: now + wait, every: repeats ? wait : 0, run: () => callback(...rest) });
    return serial;
  };
  window.setTimeout = (callback, delay, ...rest) => schedule(callback, delay, rest, false);
  window.setInterval = (callback, delay, ...rest) => schedule(callback, delay, rest, true);
  window.clearTimeout = window.clearInterval = (id) => { timers.delete(id); };

  // Longer than the 300 ms after which an autocompletion opens.
  const PATIENCE = 1000;
  const MOST_RUNS = 10000;
  function settle() {
    const end = now + PATIENCE;
    for (let runs = 0; runs < MOST_RUNS; runs++) {
      let first = null;
      for (const [id, timer] of timers) {
        if (timer.at <= end && (first === null || timer.at < timers.get(first).at)) first = id;
      }
      if (first === null) break;
      const timer = timers.get(first);
      now = timer.at;
      if (timer.every) timer.at += timer.every;
      else timers.delete(first);
      timer.run();
    }
    now = end;
  }

  // ---- settings ----
  let settings = null;
  let controls = "";
  let query = "";
  let open = false;  // whether the interstitial covers the page
  const copied = new WeakMap();  // control: the box with its copies
  const copyOf = new WeakMap();  // copy: [control, number]
  const labelled = new WeakMap();  // text node: its own text
  const overlay = document.createElement("div");

  const texts = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) found.push(walker.currentNode);
    return found;
  };
  const plain = (text) => text.replace(/\s+/g, " ").trim();
  const has = (mapping, key) => Object.prototype.hasOwnProperty.call(mapping, key);

  // Pages read the texts of these when they are clicked.
  const READ_BY_PAGES = "option, .file, .folder, .search-title, .ui-menu, .ui-datepicker";
  function label() {
    for (const node of texts(document.body)) {
      const parent = node.parentElement;
      if (parent.closest(`script, style, #query, #reward-display, ${READ_BY_PAGES}`)) continue;
      const own = labelled.get(node) ?? node.data;
      const name = plain(own);
      if (has(settings.labels, name)) {
        labelled.set(node, own);
        node.data = settings.labels[name];
      } else if (labelled.has(node)) {
        node.data = own;
      }
    }
  }

  // The instruction shows the word that means the page's word.
  function instruct() {
    const shown = document.getElementById("query");
    shown.innerHTML = query;
    const meant = Object.entries(settings.words).map(([word, meaning]) => [meaning, word]);
    if (!meant.length) return;
    const back = Object.fromEntries(meant);
    const escape = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const words = meant.map(([word]) => word).sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
    const pattern = new RegExp(`(?<!\\w)(?:${words.map(escape).join("|")})(?!\\w)`, "g");
    for (const node of texts(shown)) node.data = node.data.replace(pattern, (word) => back[word]);
  }

  // Every control gets equal copies in its place; one of them acts, the others fail the episode.
  function copy() {
    if (settings.copies < 2) return;
    for (const control of document.querySelectorAll(controls)) {
      if (copied.has(control) || copyOf.has(control)) continue;
      const box = document.createElement("span");
      box.className = "copies";
      copied.set(control, box);
      for (let number = 1; number <= settings.copies; number++) {
        const twin = control.cloneNode(true);
        for (const part of [twin, ...twin.querySelectorAll("*")]) part.removeAttribute("id");
        copyOf.set(twin, [control, number]);
        twin.addEventListener("click", (event) => {
          event.stopImmediatePropagation();
          event.preventDefault();
          press(twin);
        });
        box.append(twin);
        if (getComputedStyle(control).position === "absolute") twin.style.setProperty("--place", String(number - 1));
      }
      control.after(box);
      control.style.setProperty("display", "none", "important");
    }
  }
  function discard() {
    for (const box of document.querySelectorAll("span.copies")) {
      const control = box.previousElementSibling;
      copied.delete(control);
      control.style.removeProperty("display");
      box.remove();
    }
  }
  function press(twin) {
    const [control, number] = copyOf.get(twin);
    if (number !== settings.acting_copy) {
      core.endEpisode(-1);
      return;
    }
    // The page's scripts look at what stands around the control, and find what they put there.
    const box = copied.get(control);
    box.remove();
    (control.matches("li") ? control.querySelector("a") : control).click();
    if (control.isConnected) control.after(box);
  }

  function cover() {
    overlay.replaceChildren();
    if (!open) {
      overlay.remove();
      return;
    }
    overlay.id = "interstitial";
    const text = document.createElement("p");
    text.textContent = "Before you go on: a message of our partners.";
    overlay.append(text);
    for (const name of settings.interstitial_buttons) {
      const button = document.createElement("button");
      button.textContent = name;
      button.addEventListener("click", () => {
        if (name !== settings.interstitial_right) core.endEpisode(-1);
        open = false;
        cover();
      });
      overlay.append(button);
    }
    document.body.append(overlay);
  }
  // What is covered receives no event, not even those of scripts.
  for (const kind of ["click", "mousedown", "mouseup", "keydown", "keypress", "keyup", "input", "change", "focusin"]) {
    window.addEventListener(kind, (event) => {
      if (open && event.target instanceof Node && !overlay.contains(event.target) && event.target !== document.body) {
        event.stopImmediatePropagation();
        event.preventDefault();
      }
    }, true);
  }

  function dress() {
    const root = document.documentElement;
    if (settings.theme === "standard") delete root.dataset.theme;
    else root.dataset.theme = settings.theme;
    root.dataset.layout = settings.layout;
    label();
    copy();
    instruct();
  }

  // ---- the page as text ----
  const isShown = (part) => {
    const box = part.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(part).visibility !== "hidden";
  };
  const SKIPPED = ["query", "reward-display", "sync-task-cover", "click-canvas"];
  const FIELDS = "input, textarea";
  const PRESSED = "button, a, .ui-menu-item, .file, .folder";
  let parts = [];  // [element, entry], in reading order

  function kindOf(part) {
    for (const kind of ["folder", "file"]) if (part.classList.contains(kind)) return kind;
    return part.matches("button") ? "button" : "link";
  }
  function nameOf(field) {
    const own = field.id && document.querySelector(`label[for="${field.id}"]`);
    const before = field.previousElementSibling;
    const above = field.parentElement && field.parentElement.previousElementSibling;
    const text = (own && own.textContent) || (before && before.matches("label") && before.textContent)
      || field.placeholder || (above && above.className.includes("header") && above.textContent) || "text field";
    return plain(text).replace(/:$/, "");
  }
  function collect(part, found) {
    // positioned children of an empty box are still shown; texts for screen readers are not
    if (SKIPPED.includes(part.id) || part.matches(".ui-helper-hidden-accessible")) return;
    if (getComputedStyle(part).display === "none") return;
    const add = (entry) => found.push([part, entry, part.getBoundingClientRect()]);
    if (part.matches(FIELDS)) {
      const secret = part.type === "password";
      const value = secret ? "*".repeat(part.value.length) : part.value;
      add({ kind: "field", name: nameOf(part), value, fixed: part.readOnly });
    } else if (part.matches("select")) {
      for (const option of part.options) {
        const entry = { kind: "option", name: plain(option.text), chosen: option.selected };
        found.push([option, entry, part.getBoundingClientRect()]);
      }
    } else if (part.matches(PRESSED)) {
      const name = plain(part.textContent) || part.title;
      if (name && isShown(part)) add({ kind: kindOf(part), name });
    } else {
      for (const node of part.childNodes) {
        if (node instanceof Element) collect(node, found);
        else if (node instanceof Text && plain(node.data)) {
          const range = document.createRange();
          range.selectNodeContents(node);
          const box = range.getBoundingClientRect();
          if (box.width > 0 && box.height > 0) found.push([part, { kind: "text", name: plain(node.data) }, box]);
        }
      }
    }
  }
  // Row by row, and in a row from left to right; parts whose middle lies in the first part of a row belong to it.
  function order(found) {
    const rows = [];
    const middle = (box) => (box.top + box.bottom) / 2;
    for (const item of [...found].sort((a, b) => middle(a[2]) - middle(b[2]))) {
      const row = rows[rows.length - 1];
      if (row && middle(item[2]) < row[0][2].bottom && middle(item[2]) >= row[0][2].top) row.push(item);
      else rows.push([item]);
    }
    return rows.flatMap((row) => row.sort((a, b) => a[2].left - b[2].left));
  }
  function read() {
    const found = [];
    if (!WOB_DONE_GLOBAL) for (const child of open ? [overlay] : document.body.children) collect(child, found);
    parts = order(found);
    return {
      done: WOB_DONE_GLOBAL,
      reward: WOB_RAW_REWARD_GLOBAL,
      task: core.getUtterance(),
      elements: parts.map(([, entry]) => entry),
    };
  }

  // ---- actions ----
  function click(part) {
    if (part.matches("option")) {
      part.selected = true;
      part.parentElement.dispatchEvent(new Event("change", { bubbles: true }));
      return;
    }
    part.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true }));
    part.focus();
    part.dispatchEvent(new MouseEvent("mouseup", { bubbles: true, cancelable: true }));
    part.click();
  }
  function type(part, text) {
    part.focus();
    part.value = text;
    const last = text.slice(-1);
    part.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, key: last }));
    part.dispatchEvent(new Event("input", { bubbles: true }));
    part.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true, key: last }));
  }

  window.driftLayer = {
    isLoaded: () => document.readyState === "complete" && typeof core !== "undefined" && core.cover_div !== null,
    begin(seed, mode, selector, given) {
      settings = given;
      controls = selector;
      Math.seedrandom(seed);
      core.setDataMode(mode);
      if (window.jQuery) jQuery.fx.off = true;
      core.startEpisodeReal();
      // Time does not run out: the timer exists, since without it the page would give no reward, and never fires.
      clearTimeout(core.EP_TIMER);
      core.EP_TIMER = -1;
      core.clearTimer();
      query = document.getElementById("query").innerHTML;
      settle();
      dress();
      open = settings.interstitial;
      cover();
      return read();
    },
    configure(given) {
      const added = given.interstitial && !settings.interstitial;
      if (given.copies !== settings.copies) discard();
      settings = given;
      if (added) open = true;
      if (!given.interstitial) open = false;
      dress();
      cover();
    },
    look() {
      settle();
      dress();
      return read();
    },
    act(index, text) {
      const part = parts[index][0];
      if (text === null) click(part);
      else type(part, text);
      return this.look();
    },
    // For evaluators: which of the elements act, the instruction as the page means it, and as it is shown.
    truth() {
      const own = document.createElement("p");
      own.innerHTML = query;
      const number = (part) => {
        for (let at = part; at; at = at.parentElement) if (copyOf.has(at)) return copyOf.get(at)[1];
        return settings.acting_copy;
      };
      const shown = plain(document.getElementById("query").textContent);
      return [parts.map(([part]) => number(part) === settings.acting_copy), plain(own.textContent), shown];
    },
  };
})();
