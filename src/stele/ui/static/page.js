// Keys, the theme switch, copy buttons and filters that apply at once. Pages work without any of it.
(() => {
  const root = document.documentElement;
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  const rows = () => [...document.querySelectorAll("main tr[data-row], main li[data-row]")];
  const moveBy = (step) => {
    const all = rows();
    if (!all.length) return;
    const index = all.findIndex((row) => row.getAttribute("aria-selected") === "true") + step;
    const current = Math.max(0, Math.min(all.length - 1, index));
    all.forEach((row, i) => row.setAttribute("aria-selected", String(i === current)));
    const link = all[current].querySelector("a");
    (link || all[current]).focus();
    all[current].scrollIntoView({ block: "nearest" });
  };
  const follow = (rel) => {
    const link = document.querySelector(`a[rel~="${rel}"]`);
    if (link) link.click();
  };
  const actions = {
    "/": () => { const box = document.getElementById("find"); box.focus(); box.select(); },
    j: () => moveBy(1),
    k: () => moveBy(-1),
    "[": () => follow("prev"),
    "]": () => follow("next"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (target.closest && target.closest("input, textarea, select, [contenteditable], .cm-editor")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.id === "theme") {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("stele-theme", root.dataset.theme); } catch { /* forbidden */ }
    } else if (button.dataset.copy !== undefined) {
      const source = button.parentElement.querySelector("pre, code, textarea");
      const before = button.textContent;
      try {
        await navigator.clipboard.writeText(source.value ?? source.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = before; }, 1500);
    }
  });

  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-auto]");
    if (form && event.target.matches("select, input[type=checkbox], input[type=radio]")) form.requestSubmit();
  });
  document.querySelectorAll(".menu [aria-current], .tabs [aria-current]").forEach((link) => {
    const bar = link.closest("nav");
    bar.scrollLeft = Math.max(0, link.offsetLeft - bar.offsetLeft - 24);
  });
})();
