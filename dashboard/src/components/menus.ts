/** Menus of a page open inside of its landmark, where assistive programs look for them. */
export const MAIN = "main-content";

export const inMain = { appendTo: () => document.getElementById(MAIN) ?? document.body };
