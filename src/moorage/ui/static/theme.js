// Light or dark: as the system has it, until one is chosen.
const KEY = "moorage-theme";

export function currentTheme() {
  const stored = localStorage.getItem(KEY);
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function applyStoredTheme() {
  document.documentElement.dataset.theme = currentTheme();
}

export function toggleTheme() {
  localStorage.setItem(KEY, currentTheme() === "dark" ? "light" : "dark");
  applyStoredTheme();
  dispatchEvent(new Event("themechange"));
}

// The value of a custom property of style.css: what is drawn on a canvas has the page's colours.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
