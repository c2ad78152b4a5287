/** Light, dark or as the system says; contrast on top of either. Kept in this browser alone. */
export type Scheme = "system" | "light" | "dark";

export interface Theme {
  scheme: Scheme;
  highContrast: boolean;
}

const KEY = "odh-theme";

export function storedTheme(): Theme {
  const [scheme, contrast] = (localStorage.getItem(KEY) ?? "").split(" ");
  return {
    scheme: scheme === "light" || scheme === "dark" ? scheme : "system",
    highContrast: contrast === "high" || (!contrast && prefers("(prefers-contrast: more)")),
  };
}

export function storeTheme(theme: Theme): void {
  localStorage.setItem(KEY, `${theme.scheme} ${theme.highContrast ? "high" : "normal"}`);
  applyTheme(theme);
}

export function isDark(theme: Theme): boolean {
  return (
    theme.scheme === "dark" ||
    (theme.scheme === "system" && prefers("(prefers-color-scheme: dark)"))
  );
}

export function applyTheme(theme: Theme): void {
  const { classList } = document.documentElement;
  classList.toggle("pf-v6-theme-dark", isDark(theme));
  classList.toggle("pf-v6-theme-high-contrast", theme.highContrast);
}

function prefers(query: string): boolean {
  return window.matchMedia?.(query).matches ?? false;
}
